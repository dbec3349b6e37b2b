package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// Byte budgets of answers.
const (
	maxErrorBody   = 16 << 10
	maxSmallAnswer = 64 << 10
	maxMessage     = 1024
)

const contentJSON = "application/json"

// do signs and sends one request. body, when not nil, is encoded as JSON. The
// caller closes the response's body. Statuses of 400 and more come back as
// *Error, with the body closed.
func (c *Client) do(ctx context.Context, pod Pod, method, path string, header http.Header, body any) (*http.Response, error) {
	req, err := c.request(ctx, pod, method, path, header, body)
	if err != nil {
		return nil, notSent{err}
	}
	return c.send(pod, req)
}

// send sends a signed request.
func (c *Client) send(pod Pod, req *http.Request) (*http.Response, error) {
	var conn *countingConn
	var before int64
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if cc, ok := info.Conn.(*countingConn); ok {
			conn, before = cc, cc.written.Load()
		}
	}}
	resp, err := c.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		err = fmt.Errorf("agent of pod %s/%s: %w", pod.Namespace, pod.UID, unwrapURL(err))
		if conn == nil || conn.written.Load() == before {
			return nil, notSent{err}
		}
		return nil, err
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		resp.Body.Close()
		return nil, badAnswer("status %d", resp.StatusCode)
	}
	return resp, nil
}

func (c *Client) request(ctx context.Context, pod Pod, method, path string, header http.Header, body any) (*http.Request, error) {
	host, err := c.host(pod)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if body != nil {
		data, err := encode(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+host+path, reader)
	if err != nil {
		return nil, err
	}
	signed, _, _ := strings.Cut(path, "?")
	compact, err := c.signer.Load().sign(pod, method, signed)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Authorization", "Bearer "+compact)
	req.Header.Set("User-Agent", "berth")
	setCall(ctx, req.Header)
	if c.options.Propagate != nil {
		c.options.Propagate(ctx, req.Header)
	}
	if body != nil {
		req.Header.Set("Content-Type", contentJSON)
	}
	return req, nil
}

// encode leaves < > & as they are: commands are full of them.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// decode reads one JSON value of at most budget bytes into v, and closes the
// body.
func decode(resp *http.Response, budget int64, v any) error {
	defer resp.Body.Close()
	if t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); t != contentJSON {
		return badAnswer("content type is not %s", contentJSON)
	}
	data, err := readAll(resp, budget)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return badAnswer("not the JSON that was due")
	}
	return nil
}

func readAll(resp *http.Response, budget int64) ([]byte, error) {
	if resp.ContentLength > budget {
		return nil, badAnswer("longer than %d bytes", budget)
	}
	var b bytes.Buffer
	if resp.ContentLength > 0 {
		b.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(resp.Body, budget+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if n > budget {
		return nil, badAnswer("longer than %d bytes", budget)
	}
	return b.Bytes(), nil
}

// refusal makes an *Error of an answer. A body that is not an agent's leaves
// code and message generic.
func refusal(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, Code: "unknown", Message: http.StatusText(resp.StatusCode)}
	if data, err := readAll(resp, maxErrorBody); err == nil {
		var body wire.ErrorBody
		if json.Unmarshal(data, &body) == nil && body.Error.Code != "" {
			e.Code = clean(body.Error.Code, 64)
			e.Message = clean(body.Error.Message, maxMessage)
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s <= 3600 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// clean returns at most limit bytes of s as valid UTF-8, with anything that
// isn't printable made a space.
func clean(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// unwrapURL drops *url.Error, whose text repeats address and path.
func unwrapURL(err error) error {
	if u := errors.Unwrap(err); u != nil {
		return u
	}
	return err
}
