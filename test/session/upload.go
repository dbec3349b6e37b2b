package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// File is a file of a session's workspace, as the gateway's answer to an upload
// tells it.
type File struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Notice string `json:"notice"`
}

// Refusal is the gateway's answer to an HTTP request that it did not fulfil.
type Refusal struct {
	Status        int
	Code, Message string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the gateway answered %d %s: %s", r.Status, r.Code, r.Message)
}

// plain is for requests that are no MCP.
var plain = &http.Client{Transport: newFileTransport()}

// filePiece is how much of a file is sent at a time, and what test/bench sends over
// its plain connection.
const filePiece = 256 << 10

// newFileTransport sends a body in pieces of filePiece, where net/http has 32 KiB.
func newFileTransport() *http.Transport {
	transport := newTransport()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return fileConn{conn}, nil
	}
	return transport
}

// fileConn is a connection that files are sent over.
type fileConn struct{ net.Conn }

// ReadFrom implements io.ReaderFrom, by which net/http sends a body of known
// length.
func (c fileConn) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, make([]byte, filePiece))
}

// Upload sends a file into the target's session, with POST
// /sessions/{id}/files. The length of a content that has a method Len is announced.
// What the gateway refused is a *Refusal.
func Upload(ctx context.Context, target Target, name string, content io.Reader) (File, error) {
	to := "http://" + target.Address + "/sessions/" + target.ID + "/files?name=" + url.QueryEscape(name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, content)
	if err != nil {
		return File{}, err
	}
	if c, ok := content.(interface{ Len() int }); ok {
		request.ContentLength = int64(c.Len())
	}
	authorize(request, target)
	response, err := plain.Do(request)
	if err != nil {
		return File{}, fmt.Errorf("upload a file: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return File{}, refusal(response)
	}
	var file File
	if err := json.NewDecoder(response.Body).Decode(&file); err != nil {
		return File{}, fmt.Errorf("upload a file: %w", err)
	}
	return file, nil
}

func authorize(request *http.Request, target Target) {
	if target.Token != "" {
		request.Header.Set("Authorization", "Bearer "+target.Token)
	}
}

// refusal reads the answer to a request that was not fulfilled.
func refusal(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var is struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(body, &is); err != nil {
		return fmt.Errorf("the gateway answered %s with %q, which is no refusal: %w", response.Status, body, err)
	}
	return &Refusal{Status: response.StatusCode, Code: is.Error.Code, Message: is.Error.Message}
}
