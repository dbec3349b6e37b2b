package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	agent "github.com/berth-dev/berth/sandbox-agent/client"
)

// R32: whatever happens to a file up to 8 MiB after its export, a read gives the bytes
// of that moment.
func TestArtifactIsTheMomentOfItsExport(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	c := l.client(eras[1])
	for _, size := range []int{100_000, 8 << 20} {
		want := noise(size)
		for what, change := range map[string]string{
			"grown":      `echo more >> f`,
			"truncated":  `: > f`,
			"rewritten":  `printf XXXX | dd of=f conv=notrunc 2>/dev/null`,
			"mapped":     `python3 -c 'import mmap; f=open("f","r+b"); m=mmap.mmap(f.fileno(),0); m[0:4]=b"XXXX"; m.flush()'`,
			"replaced":   `echo other > g; mv g f`,
			"deleted":    `rm f`,
			"unreadable": `chmod 000 f`,
		} {
			if err := os.WriteFile(filepath.Join(workspace, "f"), want, 0o644); err != nil {
				t.Fatal(err)
			}
			token := export(t, c, "f")
			if out := structured(t, bash(t, c, change)); out["exit_code"] != 0. {
				t.Fatalf("%s: %v", what, out)
			}
			read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "artifact://berth/" + token})
			if err != nil || !bytes.Equal(read.Contents[0].Blob, want) {
				t.Errorf("%s: resources/read of %d bytes: %v", what, size, err)
			}
			if status, body := l.fetch(token); status != http.StatusOK || body != string(want) {
				t.Errorf("%s: GET of %d bytes: %d, %d bytes", what, size, status, len(body))
			}
			if err := os.RemoveAll(filepath.Join(workspace, "f")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// R32: above 8 MiB a file that only grew, or moved, is what it was, and one that shrank
// an error in each way to read it.
func TestPinnedArtifactOfAFileThatChanges(t *testing.T) {
	t.Parallel()
	l, workspace := newRealWithin(t, agent.Limits{ArtifactBytes: 32 << 20})
	c := l.client(eras[0])
	want := noise(9 << 20)
	if err := os.WriteFile(filepath.Join(workspace, "f"), want, 0o644); err != nil {
		t.Fatal(err)
	}
	token := export(t, c, "f")
	bash(t, c, "echo more >> f; mv f g")
	if status, body := l.fetch(token); status != http.StatusOK || body != string(want) {
		t.Errorf("grown and moved: %d, %d bytes", status, len(body))
	}
	bash(t, c, "truncate -s 1000 g")
	if status, body := l.fetch(token); status == http.StatusOK || len(body) > 1000 {
		t.Errorf("shrunk: %d, %d bytes", status, len(body))
	}
	for _, era := range eras {
		c := l.client(era)
		if read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "artifact://berth/" + token + "?offset=0&length=1000"}); err == nil {
			t.Errorf("%s: shrunk: %d bytes", era, len(read.Contents[0].Blob))
		}
		if r := call(t, c, "read_artifact", object{"uri": "artifact://berth/" + token, "length": 1000}); !r.IsError {
			t.Errorf("%s: shrunk: %v", era, r.StructuredContent)
		}
	}
}

// R32: text only if it is valid UTF-8 of a textual type, by the type that the agent
// finds; every byte arrives, and an empty file is an empty blob.
func TestArtifactContentsOfARealAgent(t *testing.T) {
	t.Parallel()
	l, workspace := newReal(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, c := range map[string]struct {
		data []byte
		text bool
	}{
		"a.txt":      {[]byte("grüß\u2028 <&>\r\n"), true},
		"a.json":     {[]byte(`{"a":1}`), true},
		"a.csv":      {[]byte("a,b\n1,2\n"), true},
		"latin1.txt": {[]byte("gr\xfc\xdf\n"), false},
		"a.png":      {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), false},
		"png.txt":    {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), false},
		"bytes":      {bytes.Repeat(all, 1000), false},
		"empty.txt":  {nil, false},
	} {
		if err := os.WriteFile(filepath.Join(workspace, name), c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, era := range eras {
			client := l.client(era)
			token := export(t, client, name)
			read, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "artifact://berth/" + token})
			if err != nil {
				t.Fatalf("%s: %s: %v", era, name, err)
			}
			got := read.Contents[0]
			if (got.Blob == nil) != c.text || got.Text+string(got.Blob) != string(c.data) {
				t.Errorf("%s: %s: text %q, blob of %d bytes", era, name, got.Text, len(got.Blob))
			}
			if era == eras[1] && read.CacheScope != "private" {
				t.Errorf("%s: cacheScope %q", name, read.CacheScope)
			}
			if status, body := l.fetch(token); status != http.StatusOK || body != string(c.data) {
				t.Errorf("%s: %s: GET %d, %d bytes", era, name, status, len(body))
			}
			if era == eras[0] && len(c.data) == 0 {
				_, body := l.do(http.MethodPost, "/mcp", "alice", strings.NewReader(fmt.Sprintf(
					`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"artifact://berth/%s"}}`, token)), func(r *http.Request) { mcpHeaders(r, era) })
				if !strings.Contains(body, `"blob":""`) {
					t.Errorf("an empty file is %s", body)
				}
			}
		}
	}
}
