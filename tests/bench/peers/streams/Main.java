// SPDX-License-Identifier: Apache-2.0
package streams;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * Main BROKERS FOLDER COMMIT_MS: runs the job until the end of the topic is committed.
 *
 * <p>Prints "running SECONDS", the processor's time of the start-up; "committed" when nothing is left; then waits for
 * "KEYS FILE" on standard input, and writes the windows of the entities in KEYS to FILE.
 */
public final class Main {
    private static final long LOOK_MS = 500;

    private final String id;
    private final KafkaStreams streams;
    private final Admin admin;
    private volatile boolean failed;

    private Main(String brokers, String folder, String commitMs) {
        Properties client = new Properties();
        client.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        id = "peer-" + commitMs;
        admin = Admin.create(client);
        streams = new KafkaStreams(Job.topology(), Job.config(brokers, id, folder, commitMs));
    }

    public static void main(String[] args) throws Exception {
        Main main = new Main(args[0], args[1], args[2]);
        boolean done = main.start() && main.waitForEnd();
        if (done) {
            System.out.println("committed");
            main.answer();
        }
        main.streams.close(Duration.ofMinutes(1));
        main.admin.close();
        System.exit(done ? 0 : 1);
    }

    private boolean start() throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            failed = true;
            running.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) running.countDown();
        });
        streams.start();
        if (!running.await(2, TimeUnit.MINUTES) || failed) return false;
        Duration used = ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO);
        System.out.printf("running %.2f%n", used.toMillis() / 1e3);
        return true;
    }

    /** The payments first: when they are committed, so are all of their edges, whose end then stays where it is. */
    private boolean waitForEnd() throws InterruptedException, ExecutionException {
        for (String topic : List.of(Job.TOPIC, id + "-" + Job.EDGES + "-repartition")) {
            while (!failed && !atEnd(topic)) Thread.sleep(LOOK_MS);
        }
        return !failed;
    }

    private boolean atEnd(String topic) throws InterruptedException, ExecutionException {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()
                .forEach(p -> wanted.put(new TopicPartition(topic, p.partition()), OffsetSpec.latest()));
        var ends = admin.listOffsets(wanted, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get();
        Map<TopicPartition, OffsetAndMetadata> committed =
                admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get();
        for (var end : ends.entrySet()) {
            OffsetAndMetadata at = committed.get(end.getKey());
            if (end.getValue().offset() > 0 && (at == null || at.offset() < end.getValue().offset())) return false;
        }
        return true;
    }

    private void answer() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line = input.readLine();
        if (line == null) return;
        String[] paths = line.split(" ", 2);
        List<Edge> edges = new ArrayList<>();
        for (String entity : Files.readAllLines(Path.of(paths[0]))) {
            String[] parts = entity.split(" ");
            edges.addAll(window(parts[0], Edge.decode(parts[1])));
        }
        try (PrintStream out = new PrintStream(Files.newOutputStream(Path.of(paths[1])), false, "UTF-8")) {
            for (Edge edge : edges) out.println(edge.line());
        }
        System.out.println("written");
    }

    private ReadOnlyKeyValueStore<Bytes, byte[]> store(String name) {
        return streams.store(StoreQueryParameters.fromNameAndType(name, QueryableStoreTypes.keyValueStore()));
    }

    private List<Edge> window(String type, String key) {
        if (type.equals("transfer")) return row(key);
        List<Edge> found = new ArrayList<>();
        for (Relation relation : Relation.ALL) {
            if (!relation.end.equals(type)) continue;
            byte[] name = relation.key(key.getBytes(StandardCharsets.UTF_8));
            byte[] edges = store(Job.WINDOWS).get(Bytes.wrap(name));
            for (int at = 0; edges != null && at < edges.length; at += relation.edgeBytes) {
                String transfer = Payment.idText(edges, at + Relation.ID_AT);
                String features = relation.features(edges, at);
                found.add(new Edge(type, key, relation.relation, "in", transfer, Window.time(edges, at), features));
            }
        }
        return found;
    }

    private List<Edge> row(String key) {
        List<Edge> found = new ArrayList<>();
        byte[] id = Payment.idOf(key);
        byte[] row = store(Job.ROWS).get(Bytes.wrap(id));
        if (row == null) return found;
        Payment payment = Payment.ofRow(id, row);
        for (Relation relation : Relation.ALL) {
            byte[] end = payment.ends[relation.ordinal()];
            if (end == null) continue;
            String features = relation.features(payment.minor, payment.currency);
            String name = new String(end, StandardCharsets.UTF_8);
            found.add(new Edge("transfer", key, relation.relation, "out", name, payment.timeMs, features));
        }
        return found;
    }
}
