package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// fakeFile is a file of a fake agent.
type fakeFile struct {
	mimeType, encoding string
	data               string
}

// file answers what is asked about files, and keeps what that was.
func (a *fakeAgent) file(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	query := r.URL.Query()
	path := query.Get("path")
	a.asked = append(a.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+"?"+query.Encode()+" "+r.Header.Get("Range")))
	f, ok := a.files[path]
	if !ok && r.Method != http.MethodPut && r.URL.Path != "/v1/list" {
		agentError(w, http.StatusNotFound, "not_found", fmt.Sprintf("there is no file %q", path))
		return
	}
	switch r.URL.Path {
	case "/v1/files":
		f.read(w, r)
	case "/v1/file":
		a.files[path] = fakeFile{"text/plain", client.EncodingUTF8, string(body)}
		agentJSON(w, client.WrittenFile{Path: path, Size: int64(len(body)), Mode: "0644", Created: !ok})
	case "/v1/edit":
		var edits struct{ Edits []client.Edit }
		if err := json.Unmarshal(body, &edits); err != nil {
			agentError(w, http.StatusBadRequest, "bad_request", err.Error())
			return
		}
		answer := client.EditedFile{Path: path}
		for _, e := range edits.Edits {
			made := client.EditMade{Replaced: strings.Count(f.data, e.Old), Line: 1 + int64(strings.Count(strings.SplitN(f.data, e.Old, 2)[0], "\n"))}
			answer.Edits = append(answer.Edits, made)
			f.data = strings.ReplaceAll(f.data, e.Old, e.New)
		}
		answer.Size = int64(len(f.data))
		a.files[path] = f
		agentJSON(w, answer)
	case "/v1/list":
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		if err := e.Encode(a.list(query.Get("limit"))); err != nil {
			panic(err)
		}
	}
}

// read answers with a file, or with lines of it.
func (f fakeFile) read(w http.ResponseWriter, r *http.Request) {
	facts := client.FileFacts{Size: int64(len(f.data)), Mode: "0644", Modified: fakeStart, MIMEType: f.mimeType, Encoding: f.encoding}
	data := f.data
	if query := r.URL.Query(); query.Has("line") {
		if f.encoding == client.EncodingBinary {
			agentError(w, http.StatusUnprocessableEntity, "not_text", fmt.Sprintf("it is not text (%s, %d bytes)", f.mimeType, len(f.data)))
			return
		}
		first, _ := strconv.Atoi(query.Get("line"))
		count, _ := strconv.Atoi(query.Get("lines"))
		lines := slices.Collect(strings.Lines(f.data))
		total := int64(len(lines))
		if first > max(len(lines), 1) {
			agentError(w, http.StatusRequestedRangeNotSatisfiable, "out_of_range", fmt.Sprintf("it has %d lines", total))
			return
		}
		before := len(strings.Join(lines[:first-1], ""))
		lines = lines[first-1:]
		l := client.FileLineFacts{First: int64(first), Count: int64(min(count, len(lines))), Offset: int64(before), Total: &total}
		data = strings.Join(lines[:l.Count], "")
		if int(l.Count) < len(lines) {
			l.Next, l.NextOffset = l.First+l.Count, l.Offset+int64(len(data))
		}
		facts.Lines = &l
	}
	header, err := json.Marshal(facts)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Berth-File", string(header))
	w.Header().Set("Content-Type", f.mimeType)
	if facts.Lines != nil || data == "" {
		fmt.Fprint(w, data) // a client that has gone needs no answer
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(data)))
}

// list lists every file, in order.
func (a *fakeAgent) list(limit string) client.FileList {
	most, _ := strconv.Atoi(limit)
	list := client.FileList{Path: ".", Entries: []client.FileEntry{}}
	for path, f := range a.files {
		list.Entries = append(list.Entries, client.FileEntry{Path: path, Type: "file", Size: int64(len(f.data)), Mode: "0644", Modified: fakeStart})
	}
	slices.SortFunc(list.Entries, func(a, b client.FileEntry) int { return strings.Compare(a.Path, b.Path) })
	if len(list.Entries) > most {
		list.Entries, list.Truncated, list.Next = list.Entries[:most], true, strconv.Itoa(most)
	}
	return list
}

// put gives the agent a file.
func (a *fakeAgent) put(path, data string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files[path] = fakeFile{"text/plain", client.EncodingUTF8, data}
}

// lastAsked is what was asked about files last.
func (a *fakeAgent) lastAsked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asked) == 0 {
		return ""
	}
	return a.asked[len(a.asked)-1]
}
