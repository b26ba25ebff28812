package check

import (
	"slices"
	"strconv"

	"shunt/compiler/source"
)

// pieceWeight is about how many values are one piece: enough to be worth the
// start, few enough that pieces share processors evenly.
const pieceWeight = 4000

// step is one level of a place in the schema: a field by name, or the elements
// of a list.
type step struct {
	name    string
	element bool
}

// piece is some values of a configuration that have the same schema and are
// judged together.
type piece struct {
	steps []step
	parts []part
	// kept has, for lists whose elements are spread over other pieces, how
	// many of them are judged as part of the list.
	kept map[*source.Node]int
}

// part is one value of a piece.
type part struct {
	node *source.Node
	path []string
}

// split cuts a configuration into pieces of about pieceWeight values, along its
// long lists, so that a large one takes little memory and several processors.
// The first piece is the configuration itself, with the first element of each
// long list that was cut. A small configuration is one piece.
func split(root *source.Node) []piece {
	s := &splitter{kept: make(map[*source.Node]int), weights: make(map[*source.Node]int)}
	s.pieces = []piece{{parts: []part{{node: root}}, kept: s.kept}}
	s.cut(root, nil, nil)
	return s.pieces
}

type splitter struct {
	pieces  []piece
	kept    map[*source.Node]int
	weights map[*source.Node]int // of nodes above pieceWeight
}

// weight counts the values in n.
func (s *splitter) weight(n *source.Node) int {
	if w, ok := s.weights[n]; ok {
		return w
	}
	w := 1
	for i := range n.Fields {
		w += s.weight(n.Fields[i].Value)
	}
	for _, e := range n.Elems {
		w += s.weight(e)
	}
	if w > pieceWeight {
		s.weights[n] = w
	}
	return w
}

// cut cuts the long lists in n and returns the weight that stays.
func (s *splitter) cut(n *source.Node, steps []step, path []string) int {
	if s.weight(n) <= pieceWeight {
		return s.weight(n)
	}
	rest := 1
	for i := range n.Fields {
		f := &n.Fields[i]
		rest += s.cut(f.Value, extend(steps, step{name: f.Name}), extend(path, f.Name))
	}
	if len(n.Elems) == 0 {
		return rest
	}
	steps = extend(steps, step{element: true})
	rest += s.cut(n.Elems[0], steps, extend(path, "0"))
	s.kept[n] = 1
	weight, open := 0, false
	for i := 1; i < len(n.Elems); i++ {
		e := n.Elems[i]
		p := part{node: e, path: extend(path, strconv.Itoa(i))}
		w := s.cut(e, steps, p.path)
		// Cutting e may have appended pieces, which ends the open one.
		if !open || weight > pieceWeight || !slices.Equal(s.pieces[len(s.pieces)-1].steps, steps) {
			s.pieces = append(s.pieces, piece{steps: steps, kept: s.kept})
			weight, open = 0, true
		}
		last := &s.pieces[len(s.pieces)-1]
		last.parts = append(last.parts, p)
		weight += w
	}
	return rest
}

// extend returns a copy of s with x at its end, so that siblings do not share
// memory.
func extend[T any](s []T, x T) []T { return append(s[:len(s):len(s)], x) }
