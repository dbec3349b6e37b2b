package session

import "context"

// Text is what read_file gives of a file.
type Text struct {
	Content    string `json:"content"`
	Encoding   string `json:"encoding"`
	Size       int64  `json:"size"`
	TotalLines int64  `json:"total_lines"`
	// NextOffset is the line to go on from; 0 if there is none.
	NextOffset int64 `json:"next_offset"`
}

// Edit is one of the edits of edit_file.
type Edit struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// Entry is one of the files that list_files gives.
type Entry struct {
	Path string `json:"path"`
	Type string `json:"type"`
	Size int64  `json:"size"`
}

// ReadFile reads a file. arguments, which may be nil, are read_file's besides the
// path.
func (s *Session) ReadFile(ctx context.Context, path string, arguments map[string]any) (Text, error) {
	var text Text
	err := s.Call(ctx, "read_file", with(arguments, "path", path), &text)
	return text, err
}

// WriteFile writes a file as a whole.
func (s *Session) WriteFile(ctx context.Context, path, content string) error {
	return s.Call(ctx, "write_file", map[string]any{"path": path, "content": content}, &struct{}{})
}

// EditFile makes all edits of a file, or none.
func (s *Session) EditFile(ctx context.Context, path string, edits ...Edit) error {
	return s.Call(ctx, "edit_file", map[string]any{"path": path, "edits": edits}, &struct{}{})
}

// ListFiles lists a directory. arguments, which may be nil, are list_files'
// besides the path.
func (s *Session) ListFiles(ctx context.Context, path string, arguments map[string]any) ([]Entry, error) {
	var list struct {
		Entries []Entry `json:"entries"`
	}
	err := s.Call(ctx, "list_files", with(arguments, "path", path), &list)
	return list.Entries, err
}

// ExportArchive exports a file or a directory as a .tar.gz.
func (s *Session) ExportArchive(ctx context.Context, path string) (Artifact, error) {
	var artifact Artifact
	err := s.Call(ctx, "export_artifact", map[string]any{"path": path, "archive": true}, &artifact)
	return artifact, err
}

// with gives arguments and one more.
func with(arguments map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	for name, value := range arguments {
		all[name] = value
	}
	return all
}
