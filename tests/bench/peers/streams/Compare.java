// SPDX-License-Identifier: Apache-2.0
package streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Compare URL KEYS WINDOWS: whether Weir at URL answers for each entity in KEYS what Main has written to WINDOWS.
 *
 * <p>Compared are relation, direction, neighbour, time and features of each edge. Where a full window ends in edges of
 * one time, which of them are in it is nobody's promise: of those only the number and the time are compared.
 */
public final class Compare {
    private static final int SHOWN = 5;
    private static final ObjectMapper JSON = new ObjectMapper();

    private Compare() {}

    public static void main(String[] args) throws Exception {
        List<String> entities = Files.readAllLines(Path.of(args[1]));
        Map<String, List<Edge>> windows = new HashMap<>();
        for (String line : Files.readAllLines(Path.of(args[2]))) {
            Edge edge = Edge.ofLine(line);
            windows.computeIfAbsent(edge.entity(), e -> new ArrayList<>()).add(edge);
        }
        HttpClient http = HttpClient.newHttpClient();
        int different = 0, full = 0, edges = 0;
        for (String entity : entities) {
            List<Edge> theirs = windows.getOrDefault(entity, List.of()), ours = ask(http, args[0], entity);
            edges += theirs.size();
            if (theirs.size() == Window.EDGES) full++;
            if (!theirs.isEmpty() && comparable(ours).equals(comparable(theirs))) continue;
            if (different++ < SHOWN) show(entity, ours, theirs);
        }
        System.out.printf("compared  %d entities, %d edges, %d full windows of %d: %d entities differ%n",
                entities.size(), edges, full, Window.EDGES, different);
        System.exit(different > 0 ? 1 : 0);
    }

    private static List<Edge> ask(HttpClient http, String url, String entity)
            throws IOException, InterruptedException {
        String path = "/v1/neighbors/" + entity.replace(' ', '/') + "?limit=" + Window.EDGES;
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path)).build();
        HttpResponse<byte[]> response = http.send(request, HttpResponse.BodyHandlers.ofByteArray());
        if (response.statusCode() != 200) throw new IOException(path + ": status " + response.statusCode());
        JsonNode answer = JSON.readTree(response.body());
        List<Edge> edges = new ArrayList<>();
        for (JsonNode n : answer.get("neighbors")) {
            long timeMs = Instant.parse(n.get("time").asText()).toEpochMilli();
            edges.add(new Edge(answer.get("type").asText(), answer.get("key").asText(), n.get("relation").asText(),
                    n.get("direction").asText(), n.get("key").asText(), timeMs, features(n.get("features"))));
        }
        return edges;
    }

    private static String features(JsonNode features) {
        if (!features.has("minor")) return "-";
        String text = Float.toString((float) features.get("minor").asDouble());
        return features.has("currency") ? text + " " + features.get("currency").asText() : text;
    }

    /** The edges sorted, those of a full window's oldest time by that time alone. */
    private static List<String> comparable(List<Edge> edges) {
        long oldest = edges.stream().mapToLong(Edge::timeMs).min().orElse(0);
        boolean full = edges.size() == Window.EDGES;
        return edges.stream().map(e -> full && e.timeMs() == oldest ? "cut " + oldest : e.content()).sorted().toList();
    }

    private static void show(String entity, List<Edge> ours, List<Edge> theirs) {
        List<String> left = new ArrayList<>(comparable(ours)), right = new ArrayList<>(comparable(theirs));
        System.out.printf("%s: Weir has %d edges, Streams %d%n", entity, left.size(), right.size());
        List<String> only = new ArrayList<>(left);
        only.removeAll(right);
        only.stream().limit(SHOWN).forEach(e -> System.out.println("  only Weir:    " + e));
        only = new ArrayList<>(right);
        only.removeAll(left);
        only.stream().limit(SHOWN).forEach(e -> System.out.println("  only Streams: " + e));
    }
}
