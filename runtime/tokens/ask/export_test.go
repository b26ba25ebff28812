package ask

// ReadAnswer is for the fuzz target.
func ReadAnswer(dst []uint32, raw []byte) ([]uint32, error) { return readAnswer(dst, raw) }
