package main

import (
	"context"
	"runtime"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/internal/version"
)

func runVersion(_ context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "version").withJSON()
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	built := struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{version.Current(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if f.json {
		return exitOK, s.JSON(built)
	}
	s.Printf("leafsql %s, %s, %s\n", built.Version, built.Go, built.Platform)
	return exitOK, nil
}
