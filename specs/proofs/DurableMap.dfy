// The contract of every store: specs/contract/DurableMap.tla. Refinement.dfy proves that the
// protocol refines it.
//
// Scans are left out, as in WalRecovery.tla: page by page they are gets.

include "WalState.dfy"

module DurableMap {
  import opened LogBlocks
  import opened WalState

  datatype Waiter = Nobody | By(client: Client)

  // A write in the tail. `waiter` is the client still waiting for it.
  datatype Entry = Entry(waiter: Waiter, record: Record)

  datatype Request =
    | NoRequest
    | GetRequest(key: Key, got: Result)
    | WriteRequest(key: Key, value: Content, done: bool)

  // The part of the map that no crash can undo; the writes after it, of which a crash may cut a
  // suffix off; what each client waits for; false between a crash and the end of recovery.
  datatype Store = Store(base: Map, tail: seq<Entry>, call: imap<Client, Request>, up: bool)

  predicate Total(s: Store) { (forall k :: k in s.base) && (forall c :: c in s.call) }

  function Records(tail: seq<Entry>): seq<Record>
    ensures |Records(tail)| == |tail|
    ensures forall i :: 0 <= i < |tail| ==> Records(tail)[i] == tail[i].record
  {
    if tail == [] then [] else [tail[0].record] + Records(tail[1..])
  }

  function Current(s: Store): Map
    requires Total(s)
  {
    Apply(s.base, Records(s.tail))
  }

  predicate InTail(s: Store, c: Client) {
    exists i :: 0 <= i < |s.tail| && s.tail[i].waiter == By(c)
  }

  predicate Call(s: Store, t: Store, c: Client, request: Request)
    requires Total(s)
  {
    && s.up && s.call[c] == NoRequest
    && (request.GetRequest? ==> request.got == Pending)
    && (request.WriteRequest? ==> !request.done)
    && t == s.(call := s.call[c := request])
  }

  predicate Read(s: Store, t: Store, c: Client)
    requires Total(s)
  {
    && s.up && s.call[c].GetRequest? && s.call[c].got == Pending
    && t == s.(call := s.call[c := s.call[c].(got := Got(Current(s)[s.call[c].key]))])
  }

  // The instant at which a write takes effect. (That some of the writes up to it become durable in
  // the same step, which the contract allows, does not happen here.)
  predicate Write(s: Store, t: Store, c: Client)
    requires Total(s)
  {
    && s.up && s.call[c].WriteRequest? && !s.call[c].done
    && t == s.(tail := s.tail + [Entry(By(c), Put(s.call[c].key, s.call[c].value))],
               call := s.call[c := s.call[c].(done := true)])
  }

  // The oldest writes become durable, any number of them.
  predicate Harden(s: Store, t: Store, n: nat)
    requires Total(s)
  {
    && 1 <= n <= |s.tail|
    && t == s.(base := Apply(s.base, Records(s.tail[..n])), tail := s.tail[n..])
  }

  predicate Answered(s: Store, c: Client)
    requires Total(s)
  {
    || (s.call[c].GetRequest? && s.call[c].got != Pending)
    || (s.call[c].WriteRequest? && s.call[c].done && !InTail(s, c))
  }

  // A client gets its answer. For a write, this is the acknowledgement.
  predicate Return(s: Store, t: Store, c: Client)
    requires Total(s)
  {
    s.up && Answered(s, c) && t == s.(call := s.call[c := NoRequest])
  }

  function Disowned(tail: seq<Entry>, c: Client): seq<Entry>
    ensures |Disowned(tail, c)| == |tail|
    ensures forall i :: 0 <= i < |tail| ==>
              Disowned(tail, c)[i] == if tail[i].waiter == By(c) then Entry(Nobody, tail[i].record)
                                      else tail[i]
  {
    if tail == [] then []
    else [if tail[0].waiter == By(c) then Entry(Nobody, tail[0].record) else tail[0]]
         + Disowned(tail[1..], c)
  }

  // A client is told that its call failed.
  predicate Fail(s: Store, t: Store, c: Client)
    requires Total(s)
  {
    && s.up && s.call[c] != NoRequest
    && t == s.(call := s.call[c := NoRequest], tail := Disowned(s.tail, c))
  }

  // The power fails; the oldest writes of the tail survive, any number.
  predicate Crash(s: Store, t: Store, n: nat)
    requires Total(s)
  {
    && n <= |s.tail|
    && t == Store(Apply(s.base, Records(s.tail[..n])), [], imap c: Client :: NoRequest, false)
  }

  predicate Recover(s: Store, t: Store) { !s.up && t == s.(up := true) }

  predicate Next(s: Store, t: Store)
    requires Total(s)
  {
    || (exists c, request :: Call(s, t, c, request))
    || (exists c :: Read(s, t, c) || Write(s, t, c) || Return(s, t, c) || Fail(s, t, c))
    || (exists n :: Harden(s, t, n))
    || (exists n :: Crash(s, t, n))
    || Recover(s, t)
  }

  predicate Init(s: Store) {
    s == Store(EmptyMap(), [], imap c: Client :: NoRequest, true)
  }
}
