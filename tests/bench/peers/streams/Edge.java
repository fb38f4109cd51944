// SPDX-License-Identifier: Apache-2.0
package streams;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/** An edge of an entity's window as a line of text: how the two sides are compared. */
record Edge(String type, String key, String relation, String direction, String neighbour, long timeMs,
        String features) {
    static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    static String decode(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    String entity() {
        return type + " " + encode(key);
    }

    /** Without the entity. */
    String content() {
        return relation + " " + direction + " " + timeMs + " " + encode(neighbour) + " " + features;
    }

    String line() {
        return entity() + " " + content();
    }

    static Edge ofLine(String line) {
        String[] parts = line.split(" ", 7);
        long timeMs = Long.parseLong(parts[4]);
        return new Edge(parts[0], decode(parts[1]), parts[2], parts[3], decode(parts[5]), timeMs, parts[6]);
    }
}
