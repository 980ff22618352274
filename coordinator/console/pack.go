package console

import (
	"bytes"
	"compress/gzip"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A page is packed for one reader, while he waits. A file is packed once.
var (
	pagePackers = sync.Pool{New: func() any { return newPacker(gzip.BestSpeed) }}
	packedFiles = sync.OnceValue(packFiles)
)

func newPacker(level int) *gzip.Writer {
	packer, _ := gzip.NewWriterLevel(nil, level) // only an unknown level is an error
	return packer
}

// packFiles packs all files that pages name, by their paths.
func packFiles() map[string][]byte {
	all := make(map[string][]byte)
	found, _ := files.ReadDir("static") // what is embedded can be read
	for _, one := range found {
		text, _ := files.ReadFile(path.Join("static", one.Name()))
		all["/static/"+one.Name()] = packedBy(newPacker(gzip.BestCompression), text)
	}
	return all
}

func packedBy(packer *gzip.Writer, text []byte) []byte {
	var packed bytes.Buffer
	packer.Reset(&packed)
	_, _ = packer.Write(text) // a buffer takes everything
	_ = packer.Close()
	return packed.Bytes()
}

// send sends a text, packed if the browser takes that.
func send(w http.ResponseWriter, r *http.Request, code int, text []byte) {
	header := w.Header()
	header.Set("Vary", "Accept-Encoding")
	if unpacks(r) {
		packer := pagePackers.Get().(*gzip.Writer)
		text = packedBy(packer, text)
		pagePackers.Put(packer)
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text) // a browser that has gone needs no answer
}

// serveFile sends a file that pages name.
func serveFile(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "max-age=300")
	header.Set("Vary", "Accept-Encoding")
	if !unpacks(r) {
		http.ServeFileFS(w, r, files, strings.TrimPrefix(r.URL.Path, "/"))
		return
	}
	header.Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	header.Set("Content-Encoding", "gzip")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(packedFiles()[r.URL.Path]))
}

// unpacks tells whether a browser says that it can unpack gzip.
func unpacks(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
