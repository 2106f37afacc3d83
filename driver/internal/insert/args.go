package insert

// AppendArgs appends to dst the arguments of a shape: the user's, with the ids
// of fills at their places. The fills are those the shape was made for. id
// converts an id to an argument. Nothing is allocated but dst's growth.
func AppendArgs[T any](dst, args []T, s *Shape, fills []Fill, id func(int64) T) []T {
	var used, insert int32
	var n int64 // ids of the statement used so far
	for _, sl := range s.slots {
		if sl.insert != insert {
			insert, n = sl.insert, 0
		}
		dst = append(dst, args[used:sl.at]...)
		used = sl.at
		f := &fills[sl.insert]
		switch sl.kind {
		case slotKey:
			dst = append(dst, id(f.First+n))
			n++
		case slotFirst:
			dst = append(dst, id(f.First))
			n++
		case slotDistance:
			dst = append(dst, id(int64(f.N-1)))
		case slotArgument:
			if f.Explicit != nil && f.Explicit[sl.ref] {
				dst = append(dst, args[used])
			} else {
				dst = append(dst, id(f.First+n))
				n++
			}
			used++
		case slotMark:
			dst = append(dst, id(f.First))
			n++
			used++
		case slotLiteral:
			n++
		}
	}
	return append(dst, args[used:]...)
}
