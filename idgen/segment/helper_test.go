package segment_test

import "errors"

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
