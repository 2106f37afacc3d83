package segment

// SetBlockSize makes blocks small, before the store is used.
func (s *Interleaved) SetBlockSize(size int64) {
	for _, share := range s.shares {
		share.size = size
	}
}
