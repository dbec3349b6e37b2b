package mcpserver

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/sandbox-agent/client"
)

// How content is told.
const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

// readFileOut is the structured result of read_file.
type readFileOut struct {
	Content        string `json:"content"`
	Encoding       string `json:"encoding"`
	About          string `json:"about"`
	Size           int64  `json:"size"`
	MIMEType       string `json:"mime_type"`
	Offset         int64  `json:"offset,omitempty"`
	Lines          *int64 `json:"lines,omitempty"`
	TotalLines     *int64 `json:"total_lines,omitempty"`
	NextOffset     int64  `json:"next_offset,omitempty"`
	ByteOffset     int64  `json:"byte_offset"`
	NextByteOffset int64  `json:"next_byte_offset,omitempty"`
	Notice         string `json:"notice,omitempty"`
}

func readFileOutSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"content":          {Type: "string"},
			"encoding":         {Type: "string", Enum: []any{encodingText, encodingBase64}, Description: "Of content: the text itself, or bytes in base64."},
			"about":            {Type: "string", Description: "In words: what of the file content is, what is not as in the file, and how to go on."},
			"size":             {Type: "integer", Description: "Bytes of the whole file."},
			"mime_type":        {Type: "string"},
			"offset":           {Type: "integer", Description: "The number of the first line, if lines were read."},
			"lines":            {Type: "integer", Description: "How many lines these are."},
			"total_lines":      {Type: "integer", Description: "How many the file has, if it is not too large to be counted."},
			"next_offset":      {Type: "integer", Description: "The offset to go on with, if lines follow."},
			"byte_offset":      {Type: "integer", Description: "The file's byte at which content begins."},
			"next_byte_offset": {Type: "integer", Description: "The byte_offset to go on with, if bytes follow."},
			"notice":           noticeSchema(),
		},
		PropertyOrder:        []string{"content", "encoding", "about", "size", "mime_type", "offset", "lines", "total_lines", "next_offset", "byte_offset", "next_byte_offset", "notice"},
		Required:             []string{"content", "encoding", "about", "size", "mime_type", "byte_offset"},
		AdditionalProperties: closed(),
	}
}

// linesOut tells lines as text. What is not UTF-8 in them is shown as U+FFFD.
func linesOut(read *client.FileContent, notice string) *readFileOut {
	l := read.Lines
	out := &readFileOut{
		Content: string(read.Data), Encoding: encodingText,
		Size: read.Size, MIMEType: read.MIMEType,
		Offset: l.First, Lines: &l.Count, TotalLines: l.Total, NextOffset: l.Next,
		ByteOffset: read.Offset, NextByteOffset: l.NextOffset, Notice: notice,
	}
	var about strings.Builder
	switch last := l.First + l.Count - 1; {
	case read.Size == 0:
		about.WriteString("The file is empty.")
	case l.First == 1 && l.Next == 0:
		fmt.Fprintf(&about, "The whole file: %s.", counted(l.Count, "line"))
	case l.Total != nil && l.Count == 1:
		fmt.Fprintf(&about, "Line %d of %d.", l.First, *l.Total)
	case l.Total != nil:
		fmt.Fprintf(&about, "Lines %d to %d of %d.", l.First, last, *l.Total)
	default:
		fmt.Fprintf(&about, "Lines %d to %d; the file has %s.", l.First, last, counted(read.Size, "byte"))
	}
	if l.Next != 0 {
		fmt.Fprintf(&about, " Go on with offset %d.", l.Next)
	}
	for _, cut := range l.Cut {
		fmt.Fprintf(&about, " Of line %d only the first %d of %d bytes are here: go on with byte_offset %d.", cut.Line, cut.Kept, cut.Size, cut.Offset+cut.Kept)
	}
	if more := l.CutCount - int64(len(l.Cut)); more > 0 {
		fmt.Fprintf(&about, " Nor are %s more whole.", counted(more, "line"))
	}
	if !utf8.Valid(read.Data) {
		out.Content = replaced(read.Data)
		about.WriteString(" Bytes that are not UTF-8 are shown as U+FFFD: with byte_offset they come as they are.")
	}
	if l.CRLF {
		about.WriteString(" Lines end in CRLF.")
	}
	out.About = about.String()
	return out
}

// bytesOut tells a part of what was read around it: as it is, as text if it is some,
// else in base64. Text is never cut within a character.
func bytesOut(read *client.FileContent, part artifact.Part, notice string) (*readFileOut, error) {
	at := int(part.Offset - read.Offset)
	if at > len(read.Data) {
		return nil, errShort
	}
	begin, end, isText := wholeCharacters(read.Data, at, int(part.Length))
	if read.Encoding != client.EncodingUTF8 || !isText {
		begin, end, isText = at, min(at+int(part.Length), len(read.Data)), false
	}
	data := read.Data[begin:end]
	out := &readFileOut{
		Content: string(data), Encoding: encodingText,
		Size: read.Size, MIMEType: read.MIMEType,
		ByteOffset: read.Offset + int64(begin), Notice: notice,
	}
	form := "as text"
	if !isText {
		form = "in base64"
		out.Content, out.Encoding = base64.StdEncoding.EncodeToString(data), encodingBase64
	}
	next := out.ByteOffset + int64(len(data))
	switch {
	case read.Size == 0:
		out.About = "The file is empty."
	case len(data) == 0:
		out.About = fmt.Sprintf("Nothing: the file has %s.", counted(read.Size, "byte"))
	default:
		out.About = fmt.Sprintf("Bytes %d to %d of %d (%s), %s.", out.ByteOffset, next-1, read.Size, read.MIMEType, form)
	}
	if next < read.Size {
		out.NextByteOffset = next
		out.About += fmt.Sprintf(" Go on with byte_offset %d.", next)
	}
	return out, nil
}

// replaced is data with U+FFFD for each byte that is not UTF-8.
func replaced(data []byte) string {
	return strings.Map(func(r rune) rune { return r }, string(data))
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
