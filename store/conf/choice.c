/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/store/conf/choice.h>

#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/suggest.h>

void weir_choices_split(const char *bars, weir_choices *choices) {
    *choices = (weir_choices){.count = 0};
    int length = snprintf(choices->text, sizeof choices->text, "%s", bars);
    WEIR_ASSERT(length > 0 && (size_t)length < sizeof choices->text);
    for (char *rest = choices->text; rest;) {
        WEIR_ASSERT(choices->count < WEIR_CHOICES_MAX);
        choices->names[choices->count++] = strsep(&rest, "|");
    }
}

bool weir_choices_have(const weir_choices *choices, const char *word) {
    for (size_t i = 0; i < choices->count; i++)
        if (!strcmp(choices->names[i], word)) return true;
    return false;
}

const char *weir_choices_sentence(const weir_choices *choices, char buffer[WEIR_CHOICES_BYTES_MAX]) {
    size_t used = 0;
    for (size_t i = 0; i < choices->count; i++) {
        const char *between = i == 0 ? "" : i + 1 == choices->count ? " or " : ", ";
        int length = snprintf(buffer + used, WEIR_CHOICES_BYTES_MAX - used, "%s%s", between, choices->names[i]);
        WEIR_ASSERT(length > 0 && used + (size_t)length < WEIR_CHOICES_BYTES_MAX);
        used += (size_t)length;
    }
    return buffer;
}

const char *weir_choices_nearest(const weir_choices *choices, const char *wrong, char *buffer, size_t size) {
    weir_suggest suggest = weir_suggest_for(wrong);
    for (size_t i = 0; i < choices->count; i++)
        weir_suggest_offer(&suggest, choices->names[i]);
    return weir_suggest_text(&suggest, buffer, size);
}
