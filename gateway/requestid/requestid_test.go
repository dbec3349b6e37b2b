package requestid_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/gateway/requestid"
)

// A caller's own id is taken if it is one that may stand in a log; else a new one.
func TestFor(t *testing.T) {
	t.Parallel()
	fresh := regexp.MustCompile(`^[0-9a-f]{16}$`)
	for name, tc := range map[string]struct {
		sent []string
		kept bool
	}{
		"none":            {nil, false},
		"empty":           {[]string{""}, false},
		"a UUID":          {[]string{"123e4567-e89b-12d3-a456-426614174000"}, true},
		"one byte":        {[]string{"7"}, true},
		"64 bytes":        {[]string{strings.Repeat("aZ9.", 15) + "a_-z"}, true},
		"65 bytes":        {[]string{strings.Repeat("a", 65)}, false},
		"a space":         {[]string{"a b"}, false},
		"a new line":      {[]string{"a\nb"}, false},
		"a quote":         {[]string{`a"b`}, false},
		"not ASCII":       {[]string{"ä"}, false},
		"the same, twice": {[]string{"a", "a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("POST", "/mcp", nil)
			for _, v := range tc.sent {
				r.Header.Add(requestid.Header, v)
			}
			got := requestid.For(r)
			if tc.kept && got != tc.sent[0] {
				t.Errorf("got %q, want the caller's %q", got, tc.sent[0])
			}
			if !tc.kept && !fresh.MatchString(got) {
				t.Errorf("got %q, want a new one of 16 hexadecimal digits", got)
			}
			if !tc.kept && got == requestid.For(r) {
				t.Errorf("two requests are called %s", got)
			}
		})
	}
}

// A record that is logged for a request names it, also beneath attributes and
// groups; one outside of a request has no such attribute.
func TestHandler(t *testing.T) {
	t.Parallel()
	ctx := requestid.With(context.Background(), "r-1")
	for name, tc := range map[string]struct {
		log  func(*slog.Logger)
		want string
	}{
		"request":    {func(l *slog.Logger) { l.InfoContext(ctx, "x", "a", 1) }, `level=INFO msg=x a=1 request=r-1`},
		"attributes": {func(l *slog.Logger) { l.With("b", 2).InfoContext(ctx, "x") }, `level=INFO msg=x b=2 request=r-1`},
		"group":      {func(l *slog.Logger) { l.WithGroup("g").InfoContext(ctx, "x") }, `level=INFO msg=x g.request=r-1`},
		"none":       {func(l *slog.Logger) { l.Info("x") }, `level=INFO msg=x`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			tc.log(slog.New(requestid.Handler(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: noTime}))))
			if got := strings.TrimSpace(b.String()); got != tc.want {
				t.Errorf("logged %q, want %q", got, tc.want)
			}
		})
	}
}

func noTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func TestMention(t *testing.T) {
	t.Parallel()
	if got := requestid.Mention(requestid.With(context.Background(), "r-1")); got != " (request r-1)" {
		t.Errorf("got %q", got)
	}
	if got := requestid.Mention(context.Background()); got != "" {
		t.Errorf("outside of a request: %q", got)
	}
}
