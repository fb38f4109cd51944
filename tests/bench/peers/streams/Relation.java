// SPDX-License-Identifier: Apache-2.0
package streams;

import java.nio.ByteBuffer;

/** The relations of the schema in tests/bench/foreign.c, and an edge of each in bytes: time, payment, features. */
enum Relation {
    SENT_BY("sent_by", "payer", true, false),
    RECEIVED_BY("received_by", "payee", true, true),
    MADE_ON("made_on", "terminal", false, false),
    ROUTED_THROUGH("routed_through", "network", false, false);

    static final Relation[] ALL = values();
    /** Behind the time, which a window is sorted by. */
    static final int ID_AT = 8;

    private static final int MINOR_AT = ID_AT + Payment.ID_BYTES;

    final String relation;
    final String end;
    final boolean hasMinor;
    final boolean hasCurrency;
    final int edgeBytes;

    Relation(String relation, String end, boolean hasMinor, boolean hasCurrency) {
        this.relation = relation;
        this.end = end;
        this.hasMinor = hasMinor;
        this.hasCurrency = hasCurrency;
        edgeBytes = MINOR_AT + (hasMinor ? 8 : 0) + (hasCurrency ? 1 : 0);
    }

    /** The name of a far end in the store of windows, and in the topic of edges. */
    byte[] key(byte[] name) {
        byte[] key = new byte[1 + name.length];
        key[0] = (byte) ordinal();
        System.arraycopy(name, 0, key, 1, name.length);
        return key;
    }

    byte[] edge(Payment payment) {
        ByteBuffer edge = ByteBuffer.allocate(edgeBytes);
        edge.putLong(payment.timeMs).put(payment.id);
        if (hasMinor) edge.putLong(payment.minor);
        if (hasCurrency) edge.put(payment.currency);
        return edge.array();
    }

    /** As text, of which the comparison has one form for both sides. */
    String features(byte[] edges, int at) {
        ByteBuffer edge = ByteBuffer.wrap(edges);
        return features(hasMinor ? edge.getLong(at + MINOR_AT) : 0, hasCurrency ? edge.get(at + MINOR_AT + 8) : 0);
    }

    String features(long minor, byte currency) {
        if (!hasMinor) return "-";
        String text = Float.toString(minor);
        return hasCurrency ? text + " " + (currency < 0 ? "null" : Payment.CURRENCIES[currency]) : text;
    }
}
