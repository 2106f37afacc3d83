package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"os"
	"time"
)

// A file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// packTar and packZip pack files into one folder, without user names and times.
func packTar(folder string, files []file) ([]byte, error) {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: epoch, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := cmp.Or(t.Close(), z.Close())
	return out.Bytes(), err
}

func packZip(folder string, files []file) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// epoch is the earliest time that a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
