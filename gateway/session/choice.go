package session

import (
	"errors"
	"fmt"
	"net/http"

	berthv1alpha1 "github.com/berth-dev/berth/api/v1alpha1"
	"github.com/berth-dev/berth/gateway/authn"
)

// Headers that choose where a session is, and what it is made from.
const (
	NamespaceHeader = "X-Sandbox-Namespace"
	TemplateHeader  = "X-Sandbox-Template"
)

// ErrTemplateForbidden means that the caller may not use that template.
var ErrTemplateForbidden = errors.New("not allowed: the caller needs a role that grants use on sandboxtemplates of that name in the session's namespace")

// Choice is what a request's headers choose; empty is not chosen.
type Choice struct{ Namespace, Template string }

// ChoiceFrom reads the headers. Its error says which is wrong, and is the caller's
// to mend.
func ChoiceFrom(h http.Header) (c Choice, err error) {
	c.Namespace, err = name(h, NamespaceHeader)
	if err != nil {
		return Choice{}, err
	}
	if c.Template, err = name(h, TemplateHeader); err != nil {
		return Choice{}, err
	}
	return c, nil
}

func name(h http.Header, header string) (string, error) {
	switch values := h.Values(header); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", fmt.Errorf("invalid %s header: it must be sent once", header)
	case !ValidID(values[0]):
		return "", fmt.Errorf("invalid %s header: it must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit", header)
	default:
		return values[0], nil
	}
}

// Namespaces chooses where a caller's sessions are.
type Namespaces struct {
	// Default is the namespace of callers that have none of their own.
	Default string
}

// For returns the namespace that the request chose, else a service account's own,
// else the default. That the caller may use it is another question.
func (n Namespaces) For(caller *authn.Caller, choice Choice) string {
	if choice.Namespace != "" {
		return choice.Namespace
	}
	if own := caller.Namespace(); own != "" {
		return own
	}
	return n.Default
}

// TemplateError is a session that isn't made from the template that its caller
// wants.
type TemplateError struct {
	Session     string
	Has, Wanted string
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("session %q was made from template %q, not %q: leave the %s header out, or use another session", e.Session, e.Has, e.Wanted, TemplateHeader)
}

// admit tells why the session isn't the caller's to use, or not as it wants it.
func (r *Request) admit(rec *Record) error {
	if !r.Caller.Owns(rec.Owner) {
		return ErrNotAvailable
	}
	if r.Template != "" && r.Template != rec.Template {
		return &TemplateError{Session: rec.Name, Has: rec.Template, Wanted: r.Template}
	}
	return nil
}

// templateOf is the template of a Sandbox, as its default has it.
func templateOf(s *berthv1alpha1.Sandbox) string {
	if s.Spec.TemplateRef.Name == "" {
		return berthv1alpha1.DefaultTemplateName
	}
	return s.Spec.TemplateRef.Name
}
