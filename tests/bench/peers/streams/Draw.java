// SPDX-License-Identifier: Apache-2.0
package streams;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Draw BROKERS COUNT SEED: prints so many entities, "TYPE KEY", each once, as many of each type.
 *
 * <p>They are of payments drawn at random, so that one with many payments comes up as often as it is used.
 */
public final class Draw {
    private static final String[] TYPES = {"transfer", "payer", "payee", "terminal", "network"};
    private static final int TRIES = 100;

    private Draw() {}

    public static void main(String[] args) {
        int count = Integer.parseInt(args[1]);
        Random random = new Random(Long.parseLong(args[2]));
        Set<String> drawn = new LinkedHashSet<>();
        try (KafkaConsumer<byte[], byte[]> consumer = open(args[0])) {
            List<TopicPartition> partitions = consumer.partitionsFor(Job.TOPIC).stream()
                    .map(p -> new TopicPartition(p.topic(), p.partition())).toList();
            Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(partitions));
            ends.values().removeIf(end -> end == 0);
            for (int tries = 0; drawn.size() < count && tries < count * TRIES; tries++) {
                String type = TYPES[drawn.size() % TYPES.length];
                String key = keyOf(draw(consumer, ends, random), type);
                if (key != null) drawn.add(type + " " + Edge.encode(key));
            }
        }
        drawn.forEach(System.out::println);
        System.exit(drawn.size() == count ? 0 : 1);
    }

    private static KafkaConsumer<byte[], byte[]> open(String brokers) {
        Properties config = new Properties();
        config.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        config.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 1);
        config.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 4096); // whatever lies behind is not looked at
        config.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Payment draw(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends,
            Random random) {
        long at = random.nextLong(ends.values().stream().mapToLong(Long::longValue).sum());
        for (var end : ends.entrySet()) {
            if (at >= end.getValue()) {
                at -= end.getValue();
                continue;
            }
            consumer.assign(List.of(end.getKey()));
            consumer.seek(end.getKey(), at);
            for (int tries = 0; tries < TRIES; tries++) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1)))
                    return Payment.parse(record.value());
            }
        }
        throw new IllegalStateException("the broker hands out no payment");
    }

    private static String keyOf(Payment payment, String type) {
        if (type.equals("transfer")) return Payment.idText(payment.id, 0);
        for (Relation relation : Relation.ALL) {
            byte[] end = payment.ends[relation.ordinal()];
            if (relation.end.equals(type)) return end == null ? null : new String(end, StandardCharsets.UTF_8);
        }
        return null;
    }
}
