package gateway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// An archive, and a digest, are made if they are asked for; what the agent says
// of them is in both forms of the result.
func TestExportOfAnArchive(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	forEachEra(t, func(t *testing.T, era string) {
		l := newLive(t)
		c := l.client(era)
		l.agent.exported = &client.Artifact{
			ID: artifactID, Name: "d.tar.gz", MIMEType: "application/gzip", Size: 9, SHA256: sum, ExpiresIn: 90, Notice: "a socket was left out: s",
		}
		for _, arguments := range []object{
			{"path": "d"}, {"path": "d", "archive": false}, {"path": "d", "archive": true}, {"path": "d", "sha256": true}, {"path": "d", "archive": true, "sha256": true},
		} {
			result := call(t, c, "export_artifact", arguments)
			uri := artifactOf + "s." + artifactID
			want := object{"name": "d.tar.gz", "mimeType": "application/gzip", "size": 9., "uri": uri, "expires_in": 90., "sha256": sum, "notice": "a socket was left out: s"}
			if diff := cmp.Diff(want, structured(t, result)); diff != "" {
				t.Errorf("structured result (-want +got):\n%s", diff)
			}
			if got, want := text(t, result), `Exported "d.tar.gz" (application/gzip, 9 bytes, SHA-256 `+sum+`) as `+uri+`, readable for 90 seconds. Note: a socket was left out: s.`; got != want {
				t.Errorf("text %q, want %q", got, want)
			}
			if link, ok := result.Content[1].(*mcp.ResourceLink); !ok || link.URI != uri {
				t.Errorf("content %+v, want a link", result.Content[1])
			}
		}
		want := []client.ExportRequest{{Path: "d"}, {Path: "d"}, {Path: "d", Archive: true}, {Path: "d", Digest: true}, {Path: "d", Archive: true, Digest: true}}
		if diff := cmp.Diff(want, l.agent.exports); diff != "" {
			t.Errorf("the agent was asked (-want +got):\n%s", diff)
		}
		for _, arguments := range []object{{"path": "d", "archive": "tar"}, {"path": "d", "sha256": 1}, {"path": "d", "format": "zip"}} {
			wantFailure(t, "wrong arguments", call(t, c, "export_artifact", arguments), "invalid arguments: ")
		}
	})
}
