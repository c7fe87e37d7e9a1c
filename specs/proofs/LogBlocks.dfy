// The bytes of the redo log: specs/wal_recovery/LogBlocks.tla. A ring of blocks, and how it is
// read back.
//
// A position counts record slots from the beginning of time, PerBlock per block. Block `index` is
// at place index % RingBlocks: laps overwrite each other. Every opening of the store begins a new
// epoch at a fresh block, so that what a crash left behind the end of the log never joins later
// blocks.

include "Device.dfy"
include "Positions.dfy"

module LogBlocks {
  import opened Device
  import opened Positions

  type Key(==, !new)
  type Value(==, !new)
  datatype Content = Absent | Present(value: Value)

  // `Gap` is a slot that no record ever takes, because an epoch ended within its block. Only the
  // history of the log has gaps; no step writes one.
  datatype Record = Gap | Put(key: Key, value: Content)

  datatype LogBlock = LogBlock(epoch: nat, index: nat, records: seq<Record>)

  type Ring = imap<int, LogBlock>

  // -----------------------------------------------------------------------------------------------
  // Reading.

  predicate IsRing<T>(blocks: imap<int, T>) { forall p :: p in blocks <==> 0 <= p < RingBlocks }

  // Whether a block on the device is the next one to be read.
  predicate Continues(block: LogBlock, epoch: nat, index: nat) {
    block.epoch == epoch && block.index == index && block.records != []
  }

  // The records of the blocks from `index` to before `stop`. The log ends at a missing block, and
  // also after a block that is not full, because then a later version of that block was lost.
  function ReadOn(blocks: Ring, epoch: nat, index: nat, stop: nat): seq<Record>
    requires IsRing(blocks)
    decreases stop - index
  {
    PlaceInRing(index);
    var block := blocks[Place(index)];
    if index >= stop || !Continues(block, epoch, index) then []
    else if |block.records| == PerBlock
    then block.records + ReadOn(blocks, epoch, index + 1, stop)
    else block.records
  }

  // The log from position `from` to its end: its records, in order.
  function ReadLog(blocks: Ring, epoch: nat, from: nat): seq<Record>
    requires IsRing(blocks)
  {
    BlockSpan(from);
    var all := ReadOn(blocks, epoch, BlockOf(from), BlockOf(from) + RingBlocks);
    var skip := from - BlockStart(from);
    if skip <= |all| then all[skip..] else []
  }

  // The block holds what the history says its slots hold.
  predicate Truthful(block: LogBlock, hist: seq<Record>) {
    && |block.records| <= PerBlock
    && Start(block.index) + |block.records| <= |hist|
    && block.records == hist[Start(block.index)..Start(block.index) + |block.records|]
  }

  // The block at `index` has all its slots up to `durable`.
  predicate Reaches(block: LogBlock, epoch: nat, index: nat, durable: nat) {
    && block.epoch == epoch && block.index == index
    && (Start(index) + |block.records| >= durable || |block.records| == PerBlock)
  }

  // If every block of the epoch tells the truth, and the blocks up to `durable` are there, then
  // reading finds a stretch of the history that ends at `durable` or later.
  lemma ReadOnFinds(blocks: Ring, epoch: nat, index: nat, stop: nat, hist: seq<Record>,
                    durable: nat)
    requires IsRing(blocks)
    requires index <= stop && durable <= Start(stop)
    requires forall p :: p in blocks && blocks[p].epoch == epoch ==> Truthful(blocks[p], hist)
    requires forall i: nat {:trigger Place(i)} :: index <= i && Start(i) < durable ==>
               Place(i) in blocks && Reaches(blocks[Place(i)], epoch, i, durable)
    requires Start(index) <= |hist|
    ensures durable <= Start(index) + |ReadOn(blocks, epoch, index, stop)|
    ensures var all := ReadOn(blocks, epoch, index, stop);
            Start(index) + |all| <= |hist| && all == hist[Start(index)..Start(index) + |all|]
    decreases stop - index
  {
    PlaceInRing(index);
    StartOfNext(index);
    if index < stop && Continues(blocks[Place(index)], epoch, index)
       && |blocks[Place(index)].records| == PerBlock {
      ReadOnFinds(blocks, epoch, index + 1, stop, hist, durable);
    }
  }

  lemma ReadLogFinds(blocks: Ring, epoch: nat, from: nat, hist: seq<Record>, durable: nat)
    requires IsRing(blocks)
    requires from <= durable <= |hist|
    requires durable <= Start(BlockOf(from) + RingBlocks)
    requires forall p :: p in blocks && blocks[p].epoch == epoch ==> Truthful(blocks[p], hist)
    requires forall i: nat {:trigger Place(i)} :: BlockOf(from) <= i && Start(i) < durable ==>
               Place(i) in blocks && Reaches(blocks[Place(i)], epoch, i, durable)
    ensures var found := ReadLog(blocks, epoch, from);
            durable <= from + |found| <= |hist| && found == hist[from..from + |found|]
  {
    BlockSpan(from);
    ReadOnFinds(blocks, epoch, BlockOf(from), BlockOf(from) + RingBlocks, hist, durable);
  }

  // Under an epoch that no block has, the log is empty.
  lemma ReadLogOfNewEpoch(blocks: Ring, epoch: nat, from: nat)
    requires IsRing(blocks)
    requires forall p :: p in blocks ==> blocks[p].epoch < epoch
    ensures ReadLog(blocks, epoch, from) == []
  {
    BlockSpan(from);
    PlaceInRing(BlockOf(from));
  }
}
