// Facts about the history of the log that the steps share.

include "Invariant.dfy"

module History {
  import opened Device
  import opened Positions
  import opened LogBlocks
  import opened WalState
  import opened Invariant

  // Values depend on the slots before them only.
  lemma ValueAtSame(a: seq<Record>, b: seq<Record>, k: Key, n: nat)
    requires n <= |a| && n <= |b|
    requires forall i :: 0 <= i < n ==> a[i] == b[i]
    ensures ValueAt(a, k, n) == ValueAt(b, k, n)
  {
    if n > 0 { ValueAtSame(a, b, k, n - 1); }
  }

  // What is not changed stays.
  lemma ValueStays(hist: seq<Record>, k: Key, from: nat, to: nat)
    requires from <= to <= |hist|
    requires NoChange(hist, k, from, to)
    ensures ValueAt(hist, k, to) == ValueAt(hist, k, from)
  {
    if from < to { ValueStays(hist, k, from, to - 1); }
  }

  // A complete image has the value.
  lemma CompleteValue(hist: seq<Record>, k: Key, image: Image, n: nat)
    requires Valid(hist, k, image) && image.lsn <= n <= |hist| && Complete(hist, k, image, n)
    ensures image.value == ValueAt(hist, k, n)
  {
    ValueStays(hist, k, image.lsn, n);
  }

  // Images outlive an append.
  lemma ValidLater(hist: seq<Record>, k: Key, image: Image, later: seq<Record>)
    requires Valid(hist, k, image)
    requires |hist| <= |later|
    requires forall i :: 0 <= i < |hist| ==> later[i] == hist[i]
    ensures Valid(later, k, image)
  {
    ValueAtSame(hist, later, k, image.lsn);
  }

  // ... and a cut behind them.
  lemma ValidCut(hist: seq<Record>, k: Key, image: Image, end: nat)
    requires Valid(hist, k, image) && image.lsn <= end
    ensures Valid(CutAt(hist, end), k, image)
  {
    CutIs(hist, end);
    ValueAtSame(hist, CutAt(hist, end), k, image.lsn);
  }

  lemma CutIs(hist: seq<Record>, end: nat)
    ensures forall i :: 0 <= i < end && i < |hist| ==> CutAt(hist, end)[i] == hist[i]
    ensures forall i :: |hist| <= i < end ==> CutAt(hist, end)[i] == Gap
    decreases end
  {
    if end > |hist| { CutIs(hist, end - 1); }
  }

  // Gaps change no value.
  lemma CutValue(hist: seq<Record>, k: Key, end: nat)
    requires end >= |hist|
    ensures ValueAt(CutAt(hist, end), k, end) == ValueAt(hist, k, |hist|)
  {
    CutIs(hist, end);
    ValueAtSame(hist, CutAt(hist, end), k, |hist|);
    ValueStays(CutAt(hist, end), k, |hist|, end);
  }

  // A map after some more records of the history.
  lemma ApplyIs(m: Map, hist: seq<Record>, from: nat, to: nat)
    requires from <= to <= |hist|
    requires forall k :: k in m && m[k] == ValueAt(hist, k, from)
    ensures forall k :: k in Apply(m, hist[from..to])
                        && Apply(m, hist[from..to])[k] == ValueAt(hist, k, to)
    decreases to
  {
    if from < to {
      ApplyIs(m, hist, from, to - 1);
      assert hist[from..to][..to - from - 1] == hist[from..to - 1];
    }
  }

  // A part without its last record is the shorter part.
  lemma CutShort(hist: seq<Record>, from: nat, to: nat)
    requires from < to <= |hist|
    ensures hist[from..to][..to - from - 1] == hist[from..to - 1]
  {
    var part := hist[from..to];
    forall i | 0 <= i < to - from - 1
      ensures part[..to - from - 1][i] == hist[from..to - 1][i]
    {
      assert part[i] == hist[from + i];
    }
  }

  // Redo leaves an image that is valid, and complete up to the end of what was redone.
  lemma RedoAllIs(pages: imap<Key, Image>, hist: seq<Record>, k: Key, from: nat, to: nat)
    requires from <= to <= |hist|
    requires forall k :: k in pages
    requires Valid(hist, k, pages[k]) && Complete(hist, k, pages[k], from)
    ensures var image := RedoAll(pages, hist[from..to], from)[k];
            Valid(hist, k, image) && Complete(hist, k, image, to)
            && (image.lsn <= to || image.lsn == pages[k].lsn)
    decreases to
  {
    if from < to {
      RedoAllIs(pages, hist, k, from, to - 1);
      CutShort(hist, from, to);
      assert hist[from..to][to - from - 1] == hist[to - 1];
    } else {
      assert hist[from..to] == [];
    }
  }
}
