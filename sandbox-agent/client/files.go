package client

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Types of the file tools.
type (
	// FileFacts say what a file is, and what of it was read.
	FileFacts = wire.FileFacts
	// FileLineFacts are what a read of lines is.
	FileLineFacts = wire.FileLineFacts
	// CutLine is a line that is too long.
	CutLine = wire.CutLine
	// WrittenFile is a file that was written.
	WrittenFile = wire.WrittenFile
	// Edit replaces a piece of a file.
	Edit = wire.Edit
	// EditMade is what became of one.
	EditMade = wire.EditMade
	// EditedFile is a file that was edited.
	EditedFile = wire.EditedFile
	// FileEntry is one entry of a FileList.
	FileEntry = wire.FileEntry
	// FileList is what is in a directory.
	FileList = wire.FileList
)

// Bounds of the file tools, and encodings that FileFacts name.
const (
	MaxFileRoots       = wire.MaxFileRoots
	DefaultFileRead    = wire.DefaultFileRead
	MaxFileRead        = wire.MaxFileRead
	MaxFileLine        = wire.MaxFileLine
	MaxEditFile        = wire.MaxEditFile
	MaxEdits           = wire.MaxEdits
	DefaultListEntries = wire.DefaultListEntries
	MaxListEntries     = wire.MaxListEntries
	MaxListDepth       = wire.MaxListDepth
	MaxGlob            = wire.MaxGlob
	MaxPath            = wire.MaxPath
	TypeFile           = wire.TypeFile
	// CodeOutOfRange is the code of a file tool's ErrRange, whose message says what
	// the file has.
	CodeOutOfRange  = wire.CodeOutOfRange
	EncodingUTF8    = wire.EncodingUTF8
	EncodingUTF16LE = wire.EncodingUTF16LE
	EncodingUTF16BE = wire.EncodingUTF16BE
	Encoding8Bit    = wire.Encoding8Bit
	EncodingBinary  = wire.EncodingBinary
)

// FileContent is a part of a file.
type FileContent struct {
	FileFacts
	// Offset is the byte of the file at which Data begins.
	Offset int64
	// Data is as it is in the file: not necessarily UTF-8.
	Data []byte
}

// Lines chooses lines of a file. The zero value is the first DefaultFileRead
// bytes of it.
type Lines struct {
	First int64 // from 1; 0 is 1
	Count int64 // at most; 0 is no bound
	Limit int   // bytes at most; 0 is DefaultFileRead, more than MaxFileRead is that
}

// ReadLines reads whole lines of the file at path: relative to the workspace, or
// absolute inside it or one of the session's roots. It returns ErrNotText when
// the file has none (the message says what it is), ErrRange for a first line
// beyond the last.
func (c *Client) ReadLines(ctx context.Context, pod Pod, path string, lines Lines) (*FileContent, error) {
	query := url.Values{wire.FileOf: {path}, wire.FileLine: {strconv.FormatInt(max(lines.First, 1), 10)}}
	if lines.Count > 0 {
		query.Set(wire.FileLines, strconv.FormatInt(lines.Count, 10))
	}
	if lines.Limit > 0 {
		query.Set(wire.FileLimit, strconv.Itoa(lines.Limit))
	}
	content, _, err := c.readFile(ctx, pod, query, nil)
	if err != nil {
		return nil, err
	}
	if err := checkLines(content, lines); err != nil {
		return nil, err
	}
	content.Offset = content.Lines.Offset
	return content, nil
}

// ReadBytes reads a part of the file at path, whatever it is: at most MaxFileRead
// bytes, which a Length of 0, or of more, asks for. It returns ErrRange for a span
// that begins beyond the end; an empty file has one at 0.
func (c *Client) ReadBytes(ctx context.Context, pod Pod, path string, span Span) (*FileContent, error) {
	if span.Length <= 0 || span.Length > wire.MaxFileRead {
		span.Length = wire.MaxFileRead
	}
	header := http.Header{"Range": {span.header()}}
	content, part, err := c.readFile(ctx, pod, url.Values{wire.FileOf: {path}}, header)
	if err != nil {
		return nil, err
	}
	return content, checkBytes(content, part, span)
}

// readFile sends a GET of a file, and reads its facts and bytes. part is the
// Content-Range of those, if they aren't the whole file.
func (c *Client) readFile(ctx context.Context, pod Pod, query url.Values, header http.Header) (_ *FileContent, part string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.StallTimeout)
	defer cancel()
	resp, err := c.do(ctx, pod, http.MethodGet, wire.FilesPath+"?"+query.Encode(), header, nil)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	var content FileContent
	if err := json.Unmarshal([]byte(resp.Header.Get(wire.FactsHeader)), &content.FileFacts); err != nil {
		return nil, "", badAnswer("a file without its facts")
	}
	if err := checkFacts(&content.FileFacts); err != nil {
		return nil, "", err
	}
	if err := c.admit(ctx, resp); err != nil {
		return nil, "", err
	}
	if content.Data, err = readAll(resp, wire.MaxFileRead); err != nil {
		return nil, "", err
	}
	if part = resp.Header.Get("Content-Range"); part == "" && resp.StatusCode == http.StatusPartialContent {
		return nil, "", badAnswer("a part of a file that says not which")
	}
	return &content, part, nil
}

// WriteFile makes body the content of the file at path, at once or not at all.
// Directories that are missing are made; a file that is there keeps its mode.
// size and body are as in Upload, and so is ErrBody.
func (c *Client) WriteFile(ctx context.Context, pod Pod, path string, size int64, body io.Reader) (*WrittenFile, error) {
	query := url.Values{wire.FileOf: {path}}
	var written WrittenFile
	sent, err := c.sendFile(ctx, pod, http.MethodPut, wire.FilePath+"?"+query.Encode(), size, body, &written)
	if err != nil {
		return nil, err
	}
	return &written, checkWritten(&written, sent)
}

// EditFile makes edits to the file at path, all of them or none. It returns
// ErrNoMatch and ErrManyMatches (the message says which edit, and what may be the
// cause), and ErrChanged when something else keeps writing to the file.
func (c *Client) EditFile(ctx context.Context, pod Pod, path string, edits []Edit) (*EditedFile, error) {
	query := url.Values{wire.FileOf: {path}}
	var edited EditedFile
	if err := c.ask(ctx, pod, http.MethodPost, wire.EditPath+"?"+query.Encode(), wire.EditRequest{Edits: edits}, maxSmallAnswer, &edited); err != nil {
		return nil, err
	}
	return &edited, checkEdited(&edited, len(edits))
}

// Listing says what to list. The zero value is what is in the workspace.
type Listing struct {
	Path   string // of a directory; empty is the workspace
	Depth  int    // 0 is as deep as Glob needs, 1 without; at most wire.MaxListDepth
	Glob   string // of paths below Path; empty is all
	Limit  int    // entries at most; 0 is DefaultListEntries, more than MaxListEntries is that
	Hidden bool   // descend into directories whose names begin with a dot
	After  string // FileList.Next
}

// ListFiles lists a directory. It returns ErrNotDirectory for a file.
func (c *Client) ListFiles(ctx context.Context, pod Pod, listing Listing) (*FileList, error) {
	query := url.Values{wire.FileOf: {cmp.Or(listing.Path, ".")}}
	if listing.Depth > 0 {
		query.Set(wire.ListDepth, strconv.Itoa(listing.Depth))
	}
	if listing.Glob != "" {
		query.Set(wire.ListGlob, listing.Glob)
	}
	if listing.Limit > 0 {
		query.Set(wire.ListLimit, strconv.Itoa(listing.Limit))
	}
	if listing.Hidden {
		query.Set(wire.ListHidden, "true")
	}
	if listing.After != "" {
		query.Set(wire.ListAfter, listing.After)
	}
	var list FileList
	if err := c.ask(ctx, pod, http.MethodGet, wire.ListPath+"?"+query.Encode(), nil, wire.MaxList+maxSmallAnswer, &list); err != nil {
		return nil, err
	}
	return &list, checkList(&list, listing.Limit)
}

// ask sends a request whose JSON answer may take StallTimeout.
func (c *Client) ask(ctx context.Context, pod Pod, method, path string, body any, budget int64, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.StallTimeout)
	defer cancel()
	resp, err := c.do(ctx, pod, method, path, nil, body)
	if err != nil {
		return err
	}
	return c.decodeAdmitted(ctx, resp, budget, answer)
}
