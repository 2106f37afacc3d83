package interleaved

// SetBlockSize makes blocks small, before the store is used.
func (s *Store) SetBlockSize(size int64) {
	for _, m := range s.members {
		m.blockSize = size
	}
}
