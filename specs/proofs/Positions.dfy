// Positions of the log, its blocks, and their places in the ring: the arithmetic of
// specs/wal_recovery/LogBlocks.tla. The export set hides division and multiplication; outside, only
// the lemmas are known.

module Positions {
  export
    provides PerBlock, RingBlocks, BlockOf, Start, Place
    provides BlockSpan, StartOfNext, BlocksApart, AllBlocksApart, AllBlockSpans, BlockOfStart
    provides NextBlock, BlocksInOrder, PlaceInRing, PlacesApart
    reveals Positive, BlockStart, NextBlockStart

  type Positive = n: int | 1 <= n witness 1

  const PerBlock: Positive      // record slots in a log block
  const RingBlocks: Positive    // log blocks on the device

  function BlockOf(position: nat): nat { position / PerBlock }
  function Start(index: nat): nat { Product(index, PerBlock); index * PerBlock }
  function BlockStart(position: nat): nat { Start(BlockOf(position)) }
  function NextBlockStart(position: nat): nat { BlockStart(position + PerBlock - 1) }
  function Place(index: nat): int { index % RingBlocks }

  // A position is in its block.
  lemma BlockSpan(position: nat)
    ensures BlockStart(position) <= position < BlockStart(position) + PerBlock
  {
  }

  // Blocks follow each other without overlap.
  lemma StartOfNext(i: nat)
    ensures Start(i + 1) == Start(i) + PerBlock
  {
    Distribute(i + 1, i, PerBlock);
  }

  lemma BlocksApart(i: nat, j: nat)
    requires i < j
    ensures Start(i) + PerBlock <= Start(j)
    decreases j
  {
    StartOfNext(j - 1);
    if i < j - 1 { BlocksApart(i, j - 1); }
  }

  lemma AllBlocksApart()
    ensures forall i: nat, j: nat {:trigger Start(i), Start(j)} ::
              i < j ==> Start(i) + PerBlock <= Start(j)
    ensures forall i: nat {:trigger Start(i + 1)} :: Start(i + 1) == Start(i) + PerBlock
  {
    forall i: nat, j: nat ensures i < j ==> Start(i) + PerBlock <= Start(j) {
      if i < j { BlocksApart(i, j); }
    }
    forall i: nat ensures Start(i + 1) == Start(i) + PerBlock { StartOfNext(i); }
  }

  lemma AllBlockSpans()
    ensures forall n: nat {:trigger BlockOf(n)} ::
              BlockStart(n) <= n < BlockStart(n) + PerBlock
  {
    forall n: nat ensures BlockStart(n) <= n < BlockStart(n) + PerBlock { BlockSpan(n); }
  }

  lemma BlocksInOrder(a: nat, b: nat)
    requires a <= b
    ensures BlockOf(a) <= BlockOf(b) && BlockStart(a) <= BlockStart(b)
  {
    BlockSpan(a); BlockSpan(b);
    if BlockOf(a) < BlockOf(b) { BlocksApart(BlockOf(a), BlockOf(b)); }
    if BlockOf(b) < BlockOf(a) { BlocksApart(BlockOf(b), BlockOf(a)); }
  }

  // The block that begins at a position is the block of that position.
  lemma BlockOfStart(index: nat)
    ensures BlockOf(Start(index)) == index
  {
    AllBlocksApart(); BlockSpan(Start(index));
  }

  lemma NextBlock(position: nat)
    ensures NextBlockStart(position) >= position
    ensures BlockStart(NextBlockStart(position)) == NextBlockStart(position)
  {
    BlockSpan(position + PerBlock - 1);
    BlockOfStart(BlockOf(position + PerBlock - 1));
  }

  lemma PlaceInRing(index: nat)
    ensures 0 <= Place(index) < RingBlocks
  {
  }

  // Within one lap, no two blocks share a place.
  lemma PlacesApart(i: nat, j: nat)
    requires i <= j < i + RingBlocks
    requires Place(i) == Place(j)
    ensures i == j
  {
    SameRemainder(i, j, RingBlocks);
  }

  lemma SameRemainder(i: nat, j: nat, m: Positive)
    requires i <= j < i + m && i % m == j % m
    ensures i == j
  {
    Distribute(j / m, i / m, m);
    if j / m > i / m { Grows(j / m - i / m, m); }
    if j / m < i / m { Grows(i / m - j / m, m); Distribute(i / m, j / m, m); }
  }

  lemma Distribute(a: int, b: int, c: int)
    ensures a * c - b * c == (a - b) * c
  {
  }

  lemma Grows(n: int, m: int)
    requires n >= 1 && m >= 1
    ensures n * m >= m
  {
    assert n * m == (n - 1) * m + m;
  }

  lemma Product(n: int, m: int)
    ensures n >= 0 && m >= 0 ==> n * m >= 0
  {
  }
}
