package artifactstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berth-dev/berth/gateway/artifact"
	"github.com/berth-dev/berth/gateway/authn"
)

func pattern(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8*13)
	}
	return data
}

// A file comes back byte by byte, whole and in parts, with what was said of it.
func TestWhatIsPutIsRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	data := pattern(1 << 20)
	f := fileOf(data)
	f.Name = "a b/%20\u202e\"данные\".tar.gz"
	h := b.keep(f)
	if h.Key != demo || h.Store != "archive" || h.Expiry != epoch.Add(DefaultExpiry).Unix() || !artifact.ValidID(h.ID) {
		t.Fatalf("handle %+v", h)
	}
	size := int64(len(data))
	for part, want := range map[artifact.Part][]byte{
		{}:                                 data,
		{Length: 1}:                        data[:1],
		{Length: size}:                     data,
		{Length: size + 1}:                 data,
		{Offset: 1}:                        data[1:],
		{Offset: size - 1}:                 data[size-1:],
		{Offset: size - 1, Length: 1}:      data[size-1:],
		{Offset: 1000, Length: 10}:         data[1000:1010],
		{Offset: 1000, Length: size}:       data[1000:],
		{Offset: 1000, Length: size - 999}: data[1000:],
	} {
		r, got, err := b.read(alice, h, part)
		if err != nil {
			t.Fatalf("%+v: %v\n%s", part, err, b.logged)
		}
		if !bytes.Equal(got, want) || r.Offset != part.Offset || r.Length != int64(len(want)) || r.Size != size {
			t.Errorf("%+v: %d bytes, offset %d, length %d, size %d", part, len(got), r.Offset, r.Length, r.Size)
		}
		if r.Name != f.Name || r.MIMEType != f.MIMEType || r.SHA256 != f.SHA256 || r.ETag != `"`+f.SHA256+`"` || r.ExpiresIn != 86400 {
			t.Errorf("%+v: %+v", part, r)
		}
	}
	b.beyond(h, size)
	b.silent()
}

// beyond holds that nothing begins at or after the end, and that its owner alone
// learns so.
func (b *bench) beyond(h artifact.Handle, size int64) {
	t := b.t
	t.Helper()
	for _, part := range []artifact.Part{{Offset: size}, {Offset: size, Length: 1}, {Offset: size * 2}} {
		if _, _, err := b.read(alice, h, part); !errors.Is(err, artifact.ErrRange) {
			t.Errorf("%+v: %v, want ErrRange", part, err)
		}
		if _, _, err := b.read(bob, h, part); !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("%+v by another: %v, want not found", part, err)
		}
	}
}

func TestAnEmptyFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.keep(fileOf(nil))
	r, data, err := b.read(alice, h, artifact.Part{})
	if err != nil || len(data) != 0 || r.Size != 0 || r.Length != 0 {
		t.Errorf("%+v, %d bytes, %v", r, len(data), err)
	}
	r, data, err = b.read(alice, h, artifact.Part{Length: 1})
	if err != nil || len(data) != 0 || r.Size != 0 || r.Length != 0 {
		t.Errorf("its first byte: %+v, %d bytes, %v; want none", r, len(data), err)
	}
	for caller, part := range map[*authn.Caller]artifact.Part{bob: {Length: 1}, alice: {Offset: 1}} {
		want := artifact.ErrNotFound
		if caller == alice {
			want = artifact.ErrRange
		}
		if _, _, err := b.read(caller, h, part); !errors.Is(err, want) {
			t.Errorf("%s, %+v: %v, want %v", caller.User.Username, part, err, want)
		}
	}
	if r, err := b.stores.Put(t.Context(), "archive", &File{
		Session: demo, Name: "n", MIMEType: "text/plain", SHA256: digestOf([]byte("x")), Open: fileOf(nil).Open,
	}); !errors.Is(err, errDiffers) {
		t.Errorf("with another's digest: %+v, %v", r, err)
	}
}

// A file's time runs from when it began to be put, by the store's clock: what its
// way took is gone.
func TestAFileExpiresFromWhenItBeganToBePut(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{
		0: 60, time.Second - 1: 59, 20 * time.Second: 40, time.Minute - 1: 0, time.Minute: 0, time.Hour: 0,
	} {
		b := newFaulty(t, func(http.ResponseWriter, *http.Request) {})
		b.expiry = time.Minute
		f := fileOf([]byte("data"))
		open := f.Open
		f.Open = func(ctx context.Context) (io.ReadCloser, error) {
			b.clock.Advance(took)
			return open(ctx)
		}
		kept, err := b.stores.Put(t.Context(), "archive", f)
		if err != nil || kept.ExpiresIn != want || kept.Handle.Expiry != epoch.Unix()+60 {
			t.Errorf("after %s: %+v, %v; want %d s", took, kept, err, want)
		}
	}
}

// A file larger than one request can put goes in parts, of which none is held.
func TestALargeFileGoesInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.limits.single, b.limits.part = 5<<20, 5<<20
	for _, size := range []int{5 << 20, 5<<20 + 1, 10 << 20, 11<<20 + 5} {
		data := pattern(size)
		h := b.keep(fileOf(data))
		r, got, err := b.read(alice, h, artifact.Part{})
		if err != nil || !bytes.Equal(got, data) || r.Size != int64(size) || r.SHA256 != digestOf(data) {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
	}
	if n := b.uploads(); n != 0 {
		t.Errorf("%d uploads are unfinished", n)
	}
}

// A file that is not what its agent had said is never kept, not even for a moment.
func TestAnAgentThatLiesKeepsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.limits.single, b.limits.part = 5<<20, 5<<20
	for _, size := range []int{1, 1000, 6 << 20} {
		data := pattern(size)
		other := bytes.Clone(data)
		other[size-1]++
		for name, sent := range map[string][]byte{"other bytes": other, "fewer": data[:size-1], "none": nil} {
			f := fileOf(data)
			f.Open = fileOf(sent).Open
			if h, err := b.stores.Put(t.Context(), "archive", f); !errors.Is(err, errDiffers) {
				t.Errorf("%d bytes, %s: %+v, %v", size, name, h, err)
			}
		}
		// What is beyond the announced size is never looked at.
		f := fileOf(data)
		f.Open = fileOf(append(bytes.Clone(data), "more"...)).Open
		if _, got, err := b.read(alice, b.keep(f), artifact.Part{}); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes and more: %d came back, %v", size, len(got), err)
		}
	}
	if keys := b.keys(); len(keys) != 3 {
		t.Errorf("objects %q, want the three good ones", keys)
	}
	if n := b.uploads(); n != 0 {
		t.Errorf("%d uploads are unfinished", n)
	}
	for _, bad := range []func(*File){
		func(f *File) { f.SHA256 = "" }, func(f *File) { f.SHA256 = strings.ToUpper(f.SHA256) }, func(f *File) { f.Name = "" },
		func(f *File) { f.Name = "\xff" }, func(f *File) { f.Name = strings.Repeat("a", 256) }, func(f *File) { f.MIMEType = "a b\r\nc: d" },
		func(f *File) { f.MIMEType = "text/plain;\r\n charset=utf-8" }, func(f *File) { f.MIMEType = "text/plain; charset=\"\u00fc\"" },
		func(f *File) { f.Size = -1 },
	} {
		f := fileOf([]byte("x"))
		bad(f)
		if _, err := b.stores.Put(t.Context(), "archive", f); !errors.Is(err, errDiffers) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// Only the session's owner reads it, whoever asks and whatever the token says.
func TestOthersFindNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.keep(fileOf([]byte("data")))
	anonymous := &authn.Caller{Anonymous: true}
	other := h
	other.Name = "demo2"
	namespace := h
	namespace.Namespace = "team"
	later := h
	later.Expiry++
	random := h
	random.ID = strings.Repeat("0", 32)
	unknown := h
	unknown.Store = "another"
	for what, try := range map[string]struct {
		caller *authn.Caller
		handle artifact.Handle
	}{
		"another caller": {bob, h}, "an anonymous caller": {anonymous, h}, "another session": {alice, other},
		"another namespace": {alice, namespace}, "another expiry": {alice, later}, "a random ID": {alice, random},
		"a store that isn't there": {alice, unknown},
	} {
		for _, part := range []artifact.Part{{}, {Length: 1}, {Offset: 1000}} {
			if _, _, err := b.read(try.caller, try.handle, part); !errors.Is(err, artifact.ErrNotFound) || err.Error() != artifact.ErrNotFound.Error() {
				t.Errorf("%s, %+v: %v, want not found", what, part, err)
			}
		}
	}
	if _, data, err := b.read(alice, h, artifact.Part{}); err != nil || string(data) != "data" {
		t.Errorf("its owner: %q, %v", data, err)
	}
	f := fileOf([]byte("open"))
	f.Owner = ""
	h = b.keep(f)
	for _, caller := range []*authn.Caller{alice, bob, anonymous} {
		if _, _, err := b.read(caller, h, artifact.Part{}); err != nil {
			t.Errorf("of a session without an owner, by %+v: %v", caller, err)
		}
	}
}

// At its expiry an object is gone, before any sweep.
func TestExpiryIsExact(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Expiry = Duration(time.Minute) })
	h := b.keep(fileOf([]byte("data")))
	b.clock.Advance(time.Minute - time.Second)
	if r, _, err := b.read(alice, h, artifact.Part{}); err != nil || r.ExpiresIn != 1 {
		t.Errorf("a second before: %+v, %v", r, err)
	}
	b.clock.Advance(time.Second)
	if _, _, err := b.read(alice, h, artifact.Part{}); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("at its expiry: %v, want not found", err)
	}
	if len(b.keys()) != 1 {
		t.Error("it was swept")
	}
}

// An object whose metadata isn't the gateway's is nobody's.
func TestForeignMetadataIsNotFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.keep(fileOf([]byte("data")))
	good := fileOf([]byte("data")).metadata()
	for name, value := range map[string]string{
		metaOwner: "", metaName: "%zz", metaType: "/", metaDigest: "abc",
	} {
		bad := make(map[string]string)
		for k, v := range good {
			bad[k] = v
		}
		if bad[name] = value; value == "" {
			delete(bad, name)
		}
		if _, err := b.admin.PutObject(t.Context(), b.bucket, b.objectKey(h), strings.NewReader("data"), 4, "", "", minio.PutObjectOptions{UserMetadata: bad}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.read(alice, h, artifact.Part{}); !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("%s=%q: %v, want not found", name, value, err)
		}
	}
}

func TestDeletedMeanwhileIsNotFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.keep(fileOf([]byte("data")))
	if err := b.admin.RemoveObject(t.Context(), b.bucket, b.objectKey(h), minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.read(alice, h, artifact.Part{}); !errors.Is(err, artifact.ErrNotFound) {
		t.Error(err)
	}
	if got := strings.Join(b.seen, ","); got != "put" {
		t.Errorf("observed %s, want the put alone", got)
	}
}

func TestMaxBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.MaxBytes = 1000 })
	b.keep(fileOf(pattern(999)))
	b.keep(fileOf(pattern(1000)))
	if _, err := b.stores.Put(t.Context(), "archive", fileOf(pattern(1001))); err == nil ||
		err.Error() != `the file has 1001 bytes, and the artifact store "archive" takes at most 1000` {
		t.Error(err)
	}
}

// An upload that is cancelled leaves nothing.
func TestACancelledPutLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.limits.single, b.limits.part = 5<<20, 5<<20
	gone := errors.New("the caller has gone")
	for _, size := range []int64{1 << 20, 12 << 20} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := fileOf(pattern(int(size)))
		f.Open = func(ctx context.Context) (io.ReadCloser, error) {
			return io.NopCloser(&ends{data: pattern(int(size) - 1), end: func() error {
				cancel(gone)
				<-ctx.Done()
				return ctx.Err()
			}}), nil
		}
		if _, err := b.stores.Put(ctx, "archive", f); !errors.Is(err, gone) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if keys, uploads := b.keys(), b.uploads(); len(keys) != 0 || uploads != 0 {
		t.Errorf("left %q and %d uploads", keys, uploads)
	}
	if len(b.seen) != 0 {
		t.Errorf("observed %q", b.seen)
	}
}

// ends yields data, and then what end says.
type ends struct {
	data []byte
	end  func() error
}

func (e *ends) Read(p []byte) (int, error) {
	if len(e.data) == 0 {
		return 0, e.end()
	}
	n := copy(p, e.data)
	e.data = e.data[n:]
	return n, nil
}
