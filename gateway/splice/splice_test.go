package splice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

type answer struct {
	Text string `json:"text,omitempty"`
	Blob []byte `json:"blob,omitempty"`
}

// roundTrip sends data through an answer and returns what its reader gets.
func roundTrip(t *testing.T, make func(ctx context.Context) answer) answer {
	t.Helper()
	s := &Splices{}
	encoded, err := json.Marshal(make(With(t.Context(), s)))
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	if err := s.Write(&sent, encoded); err != nil {
		t.Fatal(err)
	}
	var got answer
	if err := json.Unmarshal(sent.Bytes(), &got); err != nil {
		t.Fatalf("what was sent is no JSON: %v\n%.200s", err, sent.String())
	}
	return got
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("a\"\\\n\r\t\x00\x1f<&>\u2028é\U0001F600"))
	f.Add(bytes.Repeat([]byte{0, 0xff, 7}, piece))
	f.Add([]byte(strings.Repeat("\x01", 3*piece+1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := roundTrip(t, func(ctx context.Context) answer { return answer{Blob: Blob(ctx, data)} }); !bytes.Equal(got.Blob, data) {
			t.Errorf("blob of %d bytes came as %d others", len(data), len(got.Blob))
		}
		if !utf8.Valid(data) {
			return
		}
		if got := roundTrip(t, func(ctx context.Context) answer { return answer{Text: Text(ctx, data)} }); got.Text != string(data) {
			t.Errorf("text of %d bytes came as %d others", len(data), len(got.Text))
		}
	})
}

func TestSeveralInOneAnswer(t *testing.T) {
	t.Parallel()
	got := roundTrip(t, func(ctx context.Context) answer {
		blob := Blob(ctx, []byte("second")) // made first, sent second
		return answer{Text: Text(ctx, []byte("first")), Blob: blob}
	})
	if got.Text != "first" || string(got.Blob) != "second" {
		t.Errorf("got %+v", got)
	}
}

func TestWithoutSplices(t *testing.T) {
	t.Parallel()
	if got := Text(t.Context(), []byte("x")); got != "x" {
		t.Errorf("text %q", got)
	}
	if got := Blob(t.Context(), []byte("x")); string(got) != "x" {
		t.Errorf("blob %q", got)
	}
	var b bytes.Buffer
	if err := new(Splices).Write(&b, []byte("plain")); err != nil || b.String() != "plain" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestWriteErrorEndsIt(t *testing.T) {
	t.Parallel()
	s := &Splices{}
	text := Text(With(t.Context(), s), []byte(strings.Repeat("x", 10*piece)))
	gone := errors.New("gone")
	r, w := io.Pipe()
	r.CloseWithError(gone)
	if err := s.Write(w, []byte(text)); !errors.Is(err, gone) {
		t.Errorf("error %v, want %v", err, gone)
	}
}
