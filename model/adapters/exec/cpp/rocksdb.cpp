// RocksDB. Build: c++ -std=c++20 -O2 -o rocksdb rocksdb.cpp -lrocksdb. Usage: rocksdb [sync]
// With `sync`, each write is synced before it returns; else once `sync` has returned.
#include <rocksdb/db.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/write_batch.h>

#include <map>
#include <memory>

#include "../c/line.h"

using namespace rocksdb;

static OptimisticTransactionDB *store;
static std::map<unsigned long long, std::unique_ptr<Transaction>> open_tx;
static std::map<unsigned long long, const Snapshot *> snapshots;
static WriteOptions writes;
static Status status;

static Slice slice(bytes b) { return Slice(b.at, b.len); }

static void open_store(char *dir) {
  *strchr(dir + 1, '"') = 0;
  Options options;
  options.create_if_missing = true;
  // Small, so that memtables are flushed and files are merged.
  options.write_buffer_size = 64 << 10;
  options.target_file_size_base = 32 << 10;
  // A million locks, which is the default, take longer than all the rest.
  OptimisticTransactionDBOptions locks;
  locks.occ_lock_buckets = 64;
  std::vector<ColumnFamilyHandle *> handles;
  status = OptimisticTransactionDB::Open(
      options, locks, dir + 1, {{kDefaultColumnFamilyName, options}}, &handles, &store);
  for (auto *handle : handles) store->DestroyColumnFamilyHandle(handle);
}

static void close_store() {
  for (auto &[number, snapshot] : snapshots) store->ReleaseSnapshot(snapshot);
  snapshots.clear();
  open_tx.clear();
  status = store->Close();
  delete store;
}

static void rows(Iterator *i, bool back) {
  char *text = line_field(back ? "below" : "from");
  bytes bound = line_bytes(&text);
  unsigned long long limit = line_number("limit");
  if (!back) i->Seek(slice(bound));
  else if (!bound.at) i->SeekToLast();
  else {
    i->SeekForPrev(slice(bound));
    if (i->Valid() && i->key() == slice(bound)) i->Prev();
  }
  printf(",\"rows\":[");
  for (unsigned long long n = 0; i->Valid() && n < limit; n++) {
    if (n) putchar(',');
    line_hex(i->key().data(), i->key().size());
    putchar(',');
    line_hex(i->value().data(), i->value().size());
    back ? i->Prev() : i->Next();
  }
  putchar(']');
  status = i->status();
}

static void read_or_write(Transaction *tx, ReadOptions reads) {
  char *text = line_field("key");
  bytes key = line_bytes(&text);
  if (line_is("get")) {
    std::string value;
    status = tx ? tx->GetForUpdate(reads, slice(key), &value)
                : store->Get(reads, slice(key), &value);
    printf(",\"value\":");
    if (status.ok()) line_hex(value.data(), value.size());
    else printf("null");
    if (status.IsNotFound()) status = Status::OK();
  } else if (line_is("put")) {
    text = line_field("value");
    bytes value = line_bytes(&text);
    status = tx ? tx->Put(slice(key), slice(value)) : store->Put(writes, slice(key), slice(value));
  } else if (line_is("delete")) {
    status = tx ? tx->Delete(slice(key)) : store->Delete(writes, slice(key));
  } else if (line_is("batch")) {
    WriteBatch batch;
    bytes value;
    text = line_field("changes");
    while (line_change(&text, &key, &value))
      value.at ? batch.Put(slice(key), slice(value)) : batch.Delete(slice(key));
    status = store->Write(writes, &batch);
  } else {
    std::unique_ptr<Iterator> i(tx ? tx->GetIterator(reads) : store->NewIterator(reads));
    rows(i.get(), line_is("scan-back"));
  }
}

int main(int argc, char **argv) {
  writes.sync = argc > 1 && !strcmp(argv[1], "sync");
  while (line_read()) {
    unsigned long long number = line_number("tx");
    status = Status::OK();
    printf("{\"id\":%llu", line_id());
    if (line_is("hello"))
      printf(",\"protocol\":\"treering.exec/1\",\"name\":\"rocksdb\",\"durable\":\"%s\","
             "\"isolation\":\"snapshot\",\"has\":[\"scan-back\",\"batch\",\"sync\","
             "\"transactions\",\"snapshot\"],"
             "\"max_key\":1000,\"max_record\":16384,\"empty_key\":true",
             writes.sync ? "return" : "sync");
    else if (line_is("open")) open_store(line_field("dir"));
    else if (line_is("close")) close_store();
    else if (line_is("sync")) status = store->SyncWAL();
    else if (line_is("crash")) _exit(1);
    else if (line_is("begin")) {
      OptimisticTransactionOptions options;
      options.set_snapshot = true;
      open_tx[number].reset(store->BeginTransaction(writes, options));
    } else if (line_is("snapshot")) snapshots[number] = store->GetSnapshot();
    else if (line_is("commit")) { status = open_tx[number]->Commit(); open_tx.erase(number); }
    else if (line_is("abort") && snapshots.count(number)) {
      store->ReleaseSnapshot(snapshots[number]);
      snapshots.erase(number);
    } else if (line_is("abort")) open_tx.erase(number);
    else {
      ReadOptions reads;
      auto tx = open_tx.find(number);
      if (tx != open_tx.end()) reads.snapshot = tx->second->GetSnapshot();
      else if (number) reads.snapshot = snapshots[number];
      read_or_write(tx != open_tx.end() ? tx->second.get() : nullptr, reads);
    }
    bool conflict = status.IsBusy() || status.IsTryAgain();
    if (!status.ok())
      printf(",\"error\":\"%s\",\"why\":\"%s\"", conflict ? "conflict" : "refused",
             status.ToString().c_str());
    puts("}");
  }
  return 0;
}
