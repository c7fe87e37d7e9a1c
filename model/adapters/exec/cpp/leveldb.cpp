// LevelDB. Build: c++ -std=c++17 -O2 -o leveldb leveldb.cpp -lleveldb. Usage: leveldb [sync]
// With `sync`, each write is synced before it returns; else `sync` is an empty write that is.
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <map>
#include <memory>

#include "../c/line.h"

using namespace leveldb;

static DB *store;
static std::map<unsigned long long, const Snapshot *> snapshots;
static WriteOptions writes;
static Status status;

static Slice slice(bytes b) { return b.at ? Slice(b.at, b.len) : Slice(); }

static void open_store(char *dir) {
  *strchr(dir + 1, '"') = 0;
  Options options;
  options.create_if_missing = true;
  // The least, so that memtables are flushed and files are merged.
  options.write_buffer_size = 64 << 10;
  options.max_file_size = 1 << 20;
  status = DB::Open(options, dir + 1, &store);
}

static void close_store() {
  for (auto &[number, snapshot] : snapshots) store->ReleaseSnapshot(snapshot);
  snapshots.clear();
  delete store;
}

static void rows(const ReadOptions &reads, bool back) {
  std::unique_ptr<Iterator> i(store->NewIterator(reads));
  char *text = line_field(back ? "below" : "from");
  bytes bound = line_bytes(&text);
  unsigned long long limit = line_number("limit");
  if (!back) i->Seek(slice(bound));
  else if (!bound.at) i->SeekToLast();
  else {
    i->Seek(slice(bound));
    if (i->Valid()) i->Prev();
    else i->SeekToLast();
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

static void read_or_write(const ReadOptions &reads) {
  char *text = line_field("key");
  bytes key = line_bytes(&text);
  if (line_is("get")) {
    std::string value;
    status = store->Get(reads, slice(key), &value);
    printf(",\"value\":");
    if (status.ok()) line_hex(value.data(), value.size());
    else printf("null");
    if (status.IsNotFound()) status = Status::OK();
  } else if (line_is("put")) {
    text = line_field("value");
    bytes value = line_bytes(&text);
    status = store->Put(writes, slice(key), slice(value));
  } else if (line_is("delete")) {
    status = store->Delete(writes, slice(key));
  } else if (line_is("batch")) {
    WriteBatch batch;
    bytes value;
    text = line_field("changes");
    while (line_change(&text, &key, &value))
      value.at ? batch.Put(slice(key), slice(value)) : batch.Delete(slice(key));
    status = store->Write(writes, &batch);
  } else rows(reads, line_is("scan-back"));
}

int main(int argc, char **argv) {
  writes.sync = argc > 1 && !strcmp(argv[1], "sync");
  while (line_read()) {
    unsigned long long number = line_number("tx");
    status = Status::OK();
    printf("{\"id\":%llu", line_id());
    if (line_is("hello"))
      printf(",\"protocol\":\"treering.exec/1\",\"name\":\"leveldb\",\"durable\":\"%s\","
             "\"has\":[\"scan-back\",\"batch\",\"sync\",\"snapshot\"],"
             "\"max_key\":1000,\"max_record\":16384,\"empty_key\":true",
             writes.sync ? "return" : "sync");
    else if (line_is("open")) open_store(line_field("dir"));
    else if (line_is("close")) close_store();
    else if (line_is("sync")) {
      WriteOptions synced;
      synced.sync = true;
      WriteBatch empty;
      status = store->Write(synced, &empty);
    } else if (line_is("crash")) _exit(1);
    else if (line_is("snapshot")) snapshots[number] = store->GetSnapshot();
    else if (line_is("abort")) {
      store->ReleaseSnapshot(snapshots[number]);
      snapshots.erase(number);
    } else {
      ReadOptions reads;
      if (number) reads.snapshot = snapshots[number];
      read_or_write(reads);
    }
    if (!status.ok())
      printf(",\"error\":\"refused\",\"why\":\"%s\"", status.ToString().c_str());
    puts("}");
  }
  return 0;
}
