// Package zmtp is a client of ZeroMQ's wire protocol, ZMTP 3.0 with the NULL
// mechanism, for the two sockets that engines publish on: SUB for live messages
// and DEALER for replays.
//
// It speaks over any net.Conn and bounds everything that a peer announces. A
// Conn belongs to one goroutine; only Close may be called from another. Nothing
// here starts a goroutine: Subscriber.Run blocks until its context ends.
package zmtp
