package wire

// FramesType asks, as Accept of POST /v1/exec, for the output as it happens: a
// body of frames. A frame is a kind (one byte), a length (four bytes, big
// endian, at most MaxFrame) and so many bytes. The last frame of a body is a
// FrameResult or a FrameError; a body without one was cut off.
const FramesType = "application/vnd.berth.frames"

// Kinds of frames.
const (
	FrameStdout byte = 1
	FrameStderr byte = 2
	FrameResult byte = 3 // an ExecResult, as JSON
	FrameError  byte = 4 // an ErrorBody, as JSON: after all, nothing ran
)

const (
	// FrameHeader is how many bytes come before a frame's payload.
	FrameHeader = 5
	// MaxFrame bounds the payload of a frame of output. That of FrameResult is
	// bounded by MaxResult.
	MaxFrame = 1 << 20
)
