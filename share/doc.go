// Package share hands tensors to other processes without copying them. The bytes outlive every consumer's use, whichever process
// dies, and return to their owner when the last consumer has released them or is dead.
//
//	owner, err := share.NewOwner()              // arenas that other processes map
//	frame, err := tensor.Make(owner, dtype.U8, shape.MustOf(1080, 1920, 3))
//	...                                         // write it: it is built in place
//	err = peer.Offer(ctx, frame)                // lend it; from now on nobody writes it
//	frame.Release()                             // the consumer's lease keeps the bytes
//
// and in the other process
//
//	peer, err := share.Dial(ctx, "camera")
//	got, err := peer.Receive(ctx)               // a read-only tensor over the same bytes
//	got.Tensor.Release()                        // returns the lease
//
// # Connections
//
// [Owner.Listen] and [Dial] meet under a name, [Command] and [Owner.Parent] connect a process with its child. Both ends of a
// connection can offer. All peers of one owner are one audience: each can read every byte of the arenas that it is offered
// tensors of, so tensors for other eyes belong to another owner. Only processes of the same user can connect.
//
// # Ownership
//
// An owner's arena is a bounded run of memory that others map for reading; the owner alone can write it. What is made in one
// ([Owner.Alloc], through [tensor.Make] or as the destination of a run) is an ordinary tensor, exclusive and writable, until
// its first offer. Then it is immutable for good, each consumer holds a lease, and the tensor's handle is one holder among
// others: releasing it while leases are out leaves the bytes in limbo, and the last lease that ends frees them. No scan is
// needed. A tensor that lies elsewhere is copied into an arena by its offer, once for all peers of the call.
//
// A lease stands in the owner's own memory, in the row of its connection. The kernel says when a peer is dead, and then the
// whole row goes. There is no count in shared memory that a crash could leave wrong, no daemon, and no name in a file system
// but that of the socket. If the owner dies, what consumers hold stays as it was: the kernel keeps the pages for them.
//
// A received tensor is never exclusive. Its views and exports (DLPack) keep the lease too. Closing a connection revokes
// nothing: it lives on until every lease on it has ended. A consumer that releases each tensor before it receives the
// next avoids all garbage by [Peer.ReceiveInto].
//
// A peer that is stopped holds what it was sent, and cannot be made to release it. [WithStall] says how long an owner waits for it,
// [Peer.Disconnect] sends it no more and charges what it holds to its account, and [WithPeerLimit] bounds that account. What peers can
// make this process spend is bounded by [SetBudget].
//
// Empty arenas stay for the next tensors. [Owner.Collect] returns them to the system, and so does an allocation that reaches the limit.
//
// # Common bytes
//
// [Common] is for bytes that never change, such as a model's weights in the form in which kernels read them: one copy for all
// processes of a user, made by the first one and mapped by the others. They need not know of each other: they agree on the key, a
// hash of what decides the bytes. It needs no owner and no lease.
//
// # Concurrency
//
// Everything may be called from any goroutine. A release never blocks; an offer waits while the consumer holds all that it is
// willing to (credits), unless it is told not to.
//
// The protocol is in docs/share.md. Linux only: elsewhere [NewOwner] is an error that matches errors.ErrUnsupported.
package share
