// Package logline bounds what one line of the log may hold. Some of it comes from
// sandboxes, as the reason of a refusal does.
package logline

import (
	"context"
	"log/slog"
	"strings"
)

// Most is how many bytes of a value a line holds.
const Most = 1024

const cut = "... (cut)"

// Handler returns next with longer strings and errors cut. What the rest of a line
// holds is made of one line by next: JSON has no control character.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	bounded := slog.NewRecord(r.Time, r.Level, bound(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		bounded.AddAttrs(boundAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, bounded)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	bounded := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		bounded[i] = boundAttr(a)
	}
	return handler{h.Handler.WithAttrs(bounded)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

func boundAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindString {
		return slog.String(a.Key, bound(v.String()))
	}
	if err, ok := v.Any().(error); ok {
		return slog.String(a.Key, bound(err.Error()))
	}
	return a
}

func bound(s string) string {
	if len(s) <= Most {
		return s
	}
	return strings.ToValidUTF8(s[:Most], "") + cut
}
