package wire

import "time"

// Routes of the file tools. FilesPath takes GET beside the POST of uploads.
const (
	FilePath = "/v1/file" // PUT
	EditPath = "/v1/edit" // POST
	ListPath = "/v1/list" // GET
)

// Parameters of the file tools. FileOf is a path relative to the workspace, or
// absolute inside it or one of the session's roots. Each route needs it, but
// ListPath, where it is the workspace if it is absent.
const (
	FileOf = "path"

	// Of GET /v1/files: any of them asks for whole lines. FileLine is the first
	// (1), FileLines how many at most (0: no bound), FileLimit how many bytes at
	// most (DefaultFileRead; more than MaxFileRead is that).
	FileLine  = "line"
	FileLines = "lines"
	FileLimit = "limit"

	// Of GET /v1/list. ListGlob is a pattern of paths below the directory: * ? []
	// {a,b}, and ** for any number of directories. ListDepth is how deep (1: what is
	// in the directory itself; more than MaxListDepth is that); 0 is as deep as the
	// pattern needs, 1 without one. ListLimit is how many entries at
	// most (DefaultListEntries; more than MaxListEntries is that). ListHidden
	// ("true") also descends into directories whose names begin with a dot, which
	// only a pattern that names them does otherwise.
	// ListAfter is the FileList.Next of the list before.
	ListDepth  = "depth"
	ListGlob   = "glob"
	ListLimit  = "limit"
	ListHidden = "hidden"
	ListAfter  = "after"
)

// Bounds of the file tools.
const (
	// MaxFileRoots is how many directories beside the workspace a session may have.
	MaxFileRoots = 8
	// DefaultFileRead and MaxFileRead bound one read of lines.
	DefaultFileRead = 256 << 10
	MaxFileRead     = 1 << 20
	// MaxFileLine is how much of a line a read of lines holds: of a longer one, its
	// beginning (FileFacts.Cut).
	MaxFileLine = 32 << 10
	// MaxCutLines is how many cut lines a read tells of.
	MaxCutLines = 32
	// MaxEditFile is the largest file that is edited, before and after.
	MaxEditFile = 8 << 20
	// MaxEditBody bounds the body of POST /v1/edit, MaxEdits its edits.
	MaxEditBody = 2 << 20
	MaxEdits    = 256
	// DefaultListEntries and MaxListEntries bound a list, and so does MaxList, in
	// bytes of its entries' encoding. MaxListVisited is how many names are looked
	// at.
	DefaultListEntries = 1000
	MaxListEntries     = 10_000
	MaxList            = 1 << 20
	MaxListVisited     = 200_000
	// MaxListDepth is the deepest that a list goes.
	MaxListDepth = 64
	// MaxGlob bounds a pattern, in bytes, and MaxGlobAlternatives what its braces
	// stand for.
	MaxGlob             = 1024
	MaxGlobAlternatives = 256
)

// FactsHeader carries a FileFacts, as JSON in ASCII, in an answer to GET
// /v1/files. The body is the bytes that were asked for, as they are in the file.
const FactsHeader = "Berth-File"

// Encodings of FileFacts: what the beginning of the file, and what was read of
// it, look like.
const (
	EncodingUTF8    = "utf-8" // ASCII and an empty file, too
	EncodingUTF16LE = "utf-16le"
	EncodingUTF16BE = "utf-16be"
	Encoding8Bit    = "8-bit" // text of some other encoding: Latin-1, say
	EncodingBinary  = "binary"
)

// FileFacts say what a file is, and what of it was read.
type FileFacts struct {
	Size     int64     `json:"size"`
	Mode     string    `json:"mode"` // permissions as four octal digits
	Modified time.Time `json:"modified"`
	MIMEType string    `json:"mime_type"`
	Encoding string    `json:"encoding"`
	// Lines is there if lines were asked for.
	Lines *FileLineFacts `json:"lines,omitempty"`
}

// FileLineFacts are what the body of a read of lines is. The last line may have
// no newline; no line follows the last newline.
type FileLineFacts struct {
	// First is the number of the first line, from 1; Count how many there are.
	First int64 `json:"first"`
	Count int64 `json:"count"`
	// Offset is the byte of the file at which the first line begins.
	Offset int64 `json:"offset"`
	// Total is how many lines the file has, if it is not too large to be counted.
	Total *int64 `json:"total,omitempty"`
	// Next is the line to go on with, and NextOffset where that begins; both are 0
	// when nothing follows.
	Next       int64 `json:"next,omitempty"`
	NextOffset int64 `json:"next_offset,omitempty"`
	// CRLF: one of the lines at least ends in a carriage return and a newline.
	CRLF bool `json:"crlf,omitempty"`
	// Cut are lines longer than MaxFileLine, of which the body holds the beginning
	// and, if they have one, the newline. CutCount counts those beyond MaxCutLines,
	// too.
	Cut      []CutLine `json:"cut,omitempty"`
	CutCount int64     `json:"cut_count,omitempty"`
}

// CutLine is a line that is too long.
type CutLine struct {
	Line   int64 `json:"line"`
	Offset int64 `json:"offset"` // of its first byte in the file
	Size   int64 `json:"size"`   // without its end
	Kept   int64 `json:"kept"`   // how much of it the body holds
}

// WrittenFile is the answer of PUT /v1/file: 201 if the file is new, else 200.
// Its path, as everywhere in the file tools, is relative to the workspace, or
// absolute in a root.
type WrittenFile struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Mode    string `json:"mode"`
	Created bool   `json:"created,omitempty"`
}

// EditRequest is the body of POST /v1/edit. Each edit is made to what those
// before it left; all are made, or none.
type EditRequest struct {
	Edits []Edit `json:"edits"`
}

// Edit replaces Old, which must be in the file exactly once, or, with
// ReplaceAll, once at least. Old is not empty, and not New.
type Edit struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// EditedFile is the answer of POST /v1/edit.
type EditedFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Edits are as in the request.
	Edits []EditMade `json:"edits"`
}

// EditMade is what became of one edit.
type EditMade struct {
	// Replaced is how often Old was replaced, Line the number of the line in which
	// it began the first time.
	Replaced int   `json:"replaced"`
	Line     int64 `json:"line"`
}

// FileList is the answer of GET /v1/list: the entries of each directory by name,
// byte by byte, those of a directory right after it.
type FileList struct {
	Path    string      `json:"path"` // "." is the workspace
	Entries []FileEntry `json:"entries"`
	// Truncated: there may be more. Next, given as ListAfter, goes on from here; it
	// is empty when one directory alone holds more than MaxListVisited.
	Truncated bool   `json:"truncated,omitempty"`
	Next      string `json:"next,omitempty"`
	// Notice names what of it could not be read, and why.
	Notice string `json:"notice,omitempty"`
}

// Types of FileEntry.
const (
	TypeFile      = "file"
	TypeDirectory = "directory"
	TypeSymlink   = "symlink"
	TypeFIFO      = "fifo"
	TypeSocket    = "socket"
	TypeDevice    = "device"
)

// FileEntry is one entry of a directory; of a link, the link itself. Invalid
// UTF-8 is U+FFFD.
type FileEntry struct {
	Path     string    `json:"path"` // as a file tool takes it
	Type     string    `json:"type"`
	Size     int64     `json:"size"` // of a file; else 0
	Mode     string    `json:"mode"`
	Modified time.Time `json:"modified"`
	Target   string    `json:"target,omitempty"` // of a link, as it is written
}
