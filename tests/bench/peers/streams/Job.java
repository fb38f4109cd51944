// SPDX-License-Identifier: Apache-2.0
package streams;

import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/**
 * What Weir's ingest does, as Kafka Streams does it.
 *
 * <p>A payment's row goes to the store of rows in the task of the payment's partition; it names the payment's
 * neighbours, and so is its own window. An edge for each neighbour goes by one repartition topic, keyed by relation and
 * neighbour, to the task that has the neighbour's window: one value, rewritten through the record cache. Both stores
 * are in RocksDB and have changelogs. All of it is bytes, so that nothing is paid for objects.
 */
final class Job {
    static final String TOPIC = "transfers";
    static final String EDGES = "edges";
    static final String ROWS = "rows";
    static final String WINDOWS = "windows";

    private static final int THREADS = 2;
    private static final long MIB = 1 << 20;

    private Job() {}

    static final class Rows extends ContextualProcessor<byte[], byte[], Bytes, byte[]> {
        private KeyValueStore<Bytes, byte[]> rows;

        @Override
        public void init(ProcessorContext<Bytes, byte[]> context) {
            super.init(context);
            rows = context.getStateStore(ROWS);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            Payment payment = Payment.parse(record.value());
            rows.put(Bytes.wrap(payment.id), payment.row());
            for (Relation relation : Relation.ALL) {
                byte[] end = payment.ends[relation.ordinal()];
                if (end == null) continue;
                Bytes key = Bytes.wrap(relation.key(end));
                // Without the headers of the payment's record, which Weir's producer put there for Weir.
                context().forward(new Record<>(key, relation.edge(payment), record.timestamp()));
            }
        }
    }

    static final class Windows extends ContextualProcessor<Bytes, byte[], Void, Void> {
        private KeyValueStore<Bytes, byte[]> windows;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            super.init(context);
            windows = context.getStateStore(WINDOWS);
        }

        @Override
        public void process(Record<Bytes, byte[]> record) {
            byte[] window = windows.get(record.key());
            byte[] next = Window.with(window, record.value());
            if (next != window) windows.put(record.key(), next);
        }
    }

    /** Larger memtables, and one block cache for all stores; bloom filters and the way of merging are Streams' own. */
    public static final class Rocks implements RocksDBConfigSetter {
        private static final Cache CACHE = new LRUCache(512 * MIB);

        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
            table.setBlockCache(CACHE);
            options.setTableFormatConfig(table);
            options.setWriteBufferSize(32 * MIB);
        }

        @Override
        public void close(String store, Options options) {} // the cache is for the process's life
    }

    static Topology topology() {
        Serde<Bytes> key = Serdes.Bytes();
        Serde<byte[]> bytes = Serdes.ByteArray();
        StreamsBuilder builder = new StreamsBuilder();
        StoreBuilder<?> rows = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(ROWS), key, bytes);
        StoreBuilder<?> windows =
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(WINDOWS), key, bytes).withCachingEnabled();
        builder.addStateStore(rows); // a row is written once: a cache would only pass it on
        builder.addStateStore(windows);
        builder.stream(TOPIC, Consumed.with(bytes, bytes))
                .process(Rows::new, ROWS)
                .repartition(Repartitioned.with(key, bytes).withName(EDGES))
                .process(Windows::new, WINDOWS);
        return builder.build();
    }

    static Properties config(String brokers, String id, String folder, String commitMs) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        config.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitMs);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
        config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 512 * MIB);
        config.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Rocks.class);
        config.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 10000);
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 5000);
        config.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG), 4 << 20);
        config.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 256 << 10);
        config.put(StreamsConfig.producerPrefix(ProducerConfig.BUFFER_MEMORY_CONFIG), 128 * MIB);
        config.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), "lz4");
        // A busy machine must not have a commit come too late: the work would be done again.
        config.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 120000);
        return config;
    }
}
