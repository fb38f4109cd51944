// SPDX-License-Identifier: Apache-2.0
package streams;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A payment of tests/bench/foreign.c, read by Jackson's streaming parser; and its event row in bytes. */
final class Payment {
    static final String[] CURRENCIES = {"EUR", "USD", "JPY", "PLN"};
    static final int ID_BYTES = 16;
    private static final int FIXED_BYTES = 8 + 8 + 1 + 4 + Relation.ALL.length * 2;
    private static final JsonFactory JSON = new JsonFactory();

    byte[] id;
    long timeMs;
    long minor;
    byte currency;
    String purpose;
    /** The far end of each relation, in the order of Relation.ALL; null where the payment has none. */
    final byte[][] ends = new byte[Relation.ALL.length][];

    static Payment parse(byte[] json) {
        Payment payment = new Payment();
        try (JsonParser parser = JSON.createParser(json)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) throw new IOException("no object");
            for (String name; (name = parser.nextFieldName()) != null; ) {
                if (parser.nextToken() == JsonToken.START_OBJECT) payment.readObject(parser, name);
                else payment.readField(parser, name);
            }
        } catch (IOException e) {
            throw new IllegalArgumentException("no payment: " + new String(json, StandardCharsets.UTF_8), e);
        }
        if (payment.id == null || payment.ends[0] == null || payment.ends[1] == null)
            throw new IllegalArgumentException("a payment without id or ends");
        return payment;
    }

    private void readField(JsonParser parser, String name) throws IOException {
        if (name.equals("uid")) id = idOf(parser.getText());
        else if (name.equals("purpose")) purpose = parser.getText();
        else parser.skipChildren();
    }

    private void readObject(JsonParser parser, String object) throws IOException {
        for (String name; (name = parser.nextFieldName()) != null; ) {
            parser.nextToken();
            switch (object) {
                case "at" -> timeMs = parser.getLongValue();
                case "sum" -> readSum(parser, name);
                case "orig" -> readEnd(parser, name, "iban", 0);
                case "dest" -> readEnd(parser, name, "alias", 1);
                case "dev" -> readEnd(parser, name, "fp", 2);
                case "net" -> readEnd(parser, name, "as", 3);
                default -> parser.skipChildren();
            }
        }
    }

    private void readSum(JsonParser parser, String name) throws IOException {
        if (name.equals("minor")) minor = Long.parseLong(parser.getText());
        else currency = currencyOf(parser.getText());
    }

    private void readEnd(JsonParser parser, String name, String wanted, int relation) throws IOException {
        if (name.equals(wanted)) ends[relation] = parser.getText().getBytes(StandardCharsets.UTF_8);
        else parser.skipChildren();
    }

    private static byte currencyOf(String text) {
        for (byte i = 0; i < CURRENCIES.length; i++) if (CURRENCIES[i].equals(text)) return i;
        return -1;
    }

    /** The 36 characters of an id as 16 bytes. */
    static byte[] idOf(String text) {
        byte[] id = new byte[ID_BYTES];
        int digits = 0;
        for (int i = 0; i < text.length(); i++) {
            int digit = Character.digit(text.charAt(i), 16);
            if (digit < 0) continue;
            id[digits >> 1] |= (byte) (digits % 2 == 0 ? digit << 4 : digit);
            digits++;
        }
        return id;
    }

    static String idText(byte[] bytes, int at) {
        StringBuilder text = new StringBuilder(36);
        for (int i = 0; i < ID_BYTES; i++) {
            if (i == 4 || i == 6 || i == 8 || i == 10) text.append('-');
            text.append(Character.forDigit(bytes[at + i] >> 4 & 15, 16));
            text.append(Character.forDigit(bytes[at + i] & 15, 16));
        }
        return text.toString();
    }

    /** Time, sum, currency, purpose, and the far ends, each behind its length. */
    byte[] row() {
        int length = FIXED_BYTES;
        for (byte[] end : ends) if (end != null) length += end.length;
        ByteBuffer row = ByteBuffer.allocate(length);
        row.putLong(timeMs).putLong(minor).put(currency);
        for (int i = 0; i < 4; i++) row.put((byte) (purpose != null && i < purpose.length() ? purpose.charAt(i) : 0));
        for (byte[] end : ends) {
            row.putShort((short) (end == null ? -1 : end.length));
            if (end != null) row.put(end);
        }
        return row.array();
    }

    static Payment ofRow(byte[] id, byte[] bytes) {
        Payment payment = new Payment();
        ByteBuffer row = ByteBuffer.wrap(bytes);
        payment.id = id;
        payment.timeMs = row.getLong();
        payment.minor = row.getLong();
        payment.currency = row.get();
        row.getInt();
        for (int i = 0; i < payment.ends.length; i++) {
            short length = row.getShort();
            if (length < 0) continue;
            payment.ends[i] = new byte[length];
            row.get(payment.ends[i]);
        }
        return payment;
    }
}
