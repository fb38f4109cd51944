// SPDX-License-Identifier: Apache-2.0
package streams;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The newest edges of one vertex and relation as one value: edges of one length, rising by time. */
final class Window {
    /** As many as `store.window` of Weir keeps in memory by default. */
    static final int EDGES = 128;

    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private Window() {}

    static long time(byte[] edges, int at) {
        return (long) LONG.get(edges, at);
    }

    /** The window with the edge in its place; the same array when the edge is older than a full window. */
    static byte[] with(byte[] window, byte[] edge) {
        if (window == null) return edge;
        int size = edge.length;
        long time = time(edge, 0);
        int at = window.length; // most edges are the newest, or nearly
        while (at > 0 && time(window, at - size) > time) at -= size;
        int cut = window.length == EDGES * size ? size : 0;
        if (cut > 0 && at == 0) return window;
        byte[] next = new byte[window.length + size - cut];
        System.arraycopy(window, cut, next, 0, at - cut);
        System.arraycopy(edge, 0, next, at - cut, size);
        System.arraycopy(window, at, next, at - cut + size, window.length - at);
        return next;
    }
}
