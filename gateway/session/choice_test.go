package session

import (
	"net/http"
	"strings"
	"testing"
)

func TestChoiceFrom(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header http.Header
		want   Choice
		fault  string
	}{
		"nothing":                      {http.Header{}, Choice{}, ""},
		"both":                         {http.Header{NamespaceHeader: {"team-a"}, TemplateHeader: {"python"}}, Choice{"team-a", "python"}, ""},
		"namespace of 63":              {http.Header{NamespaceHeader: {strings.Repeat("a", 63)}}, Choice{strings.Repeat("a", 63), ""}, ""},
		"namespace of 64":              {http.Header{NamespaceHeader: {strings.Repeat("a", 64)}}, Choice{}, "invalid X-Sandbox-Namespace header: it must be 1 to 63"},
		"empty namespace":              {http.Header{NamespaceHeader: {""}}, Choice{}, "invalid X-Sandbox-Namespace header: it must be 1 to 63"},
		"namespace twice":              {http.Header{NamespaceHeader: {"a", "a"}}, Choice{}, "invalid X-Sandbox-Namespace header: it must be sent once"},
		"a list of namespaces":         {http.Header{NamespaceHeader: {"a, b"}}, Choice{}, "invalid X-Sandbox-Namespace header: it must be 1 to 63"},
		"a path":                       {http.Header{NamespaceHeader: {"../kube-system"}}, Choice{}, "invalid X-Sandbox-Namespace header: it must be 1 to 63"},
		"upper case":                   {http.Header{TemplateHeader: {"Python"}}, Choice{}, "invalid X-Sandbox-Template header: it must be 1 to 63"},
		"template twice":               {http.Header{TemplateHeader: {"a", "b"}}, Choice{}, "invalid X-Sandbox-Template header: it must be sent once"},
		"good namespace, bad template": {http.Header{NamespaceHeader: {"a"}, TemplateHeader: {"-"}}, Choice{}, "invalid X-Sandbox-Template header: it must be 1 to 63"},
	}
	for name, tc := range tests {
		got, err := ChoiceFrom(tc.header)
		switch {
		case got != tc.want || (err == nil) != (tc.fault == ""):
			t.Errorf("%s: %+v, %v; want %+v, %q", name, got, err, tc.want, tc.fault)
		case err != nil && !strings.HasPrefix(err.Error(), tc.fault):
			t.Errorf("%s: error %v, want %q", name, err, tc.fault)
		}
	}
}
