package worker

import (
	"context"
	"strconv"
	"sync"
)

// memory is Slots in this process's memory: what a fixed worker id without
// local state has, so that at least two pools of one process can't both use it.
type memory struct {
	mu    sync.Mutex
	slots map[int]remembered
}

type remembered struct {
	doc Doc
	ver int
}

var inProcess memory

func (m *memory) Get(_ context.Context, slot int) (Doc, Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slots[slot]
	return s.doc, s.version(), nil
}

func (m *memory) Put(_ context.Context, slot int, d Doc, expected Version) (Version, Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slots[slot]
	if s.version() != expected {
		return "", Refused, nil
	}
	if m.slots == nil {
		m.slots = make(map[int]remembered)
	}
	s = remembered{d, s.ver + 1}
	m.slots[slot] = s
	return s.version(), OK, nil
}

func (s remembered) version() Version {
	if s.ver == 0 {
		return ""
	}
	return Version(strconv.Itoa(s.ver))
}
