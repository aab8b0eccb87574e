/* figure_latency.c - the latency of every iteration, one small plot per row of the matrix. */
#include "report/figures.h"

#include "report/svg.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 330.0
#define HEIGHT 150.0
#define LEFT 48.0
#define RIGHT 8.0
#define TOP 22.0
#define BOTTOM 20.0

/* More points than this are drawn as the span of each column of pixels. */
#define POINT_LIMIT 260u

static double highest(const struct report_row *row)
{
    double most = 0;
    for (size_t i = 0; i < row->latency_count; i++)
        if (isfinite(row->latencies_ms[i]) && row->latencies_ms[i] > most)
            most = row->latencies_ms[i];
    return most;
}

static double place_y(double value, double top)
{
    double plot = HEIGHT - TOP - BOTTOM;
    double part = isfinite(value) && value > 0 ? value / top : 0;
    return HEIGHT - BOTTOM - part * plot;
}

static void draw_points(struct doc *doc, const struct report_row *row, double top)
{
    double plot = WIDTH - LEFT - RIGHT;
    size_t count = row->latency_count;
    if (count <= POINT_LIMIT) {
        for (size_t i = 0; i < count; i++)
            svg_dot(doc, LEFT + plot * ((double)i + 0.5) / (double)count,
                    place_y(row->latencies_ms[i], top), 1.8, "point");
        return;
    }
    for (size_t column = 0; column < POINT_LIMIT; column++) {
        size_t from = column * count / POINT_LIMIT, to = (column + 1) * count / POINT_LIMIT;
        double least = row->latencies_ms[from], most = least;
        for (size_t i = from; i < to; i++) {
            least = fmin(least, row->latencies_ms[i]);
            most = fmax(most, row->latencies_ms[i]);
        }
        double x = LEFT + plot * ((double)column + 0.5) / POINT_LIMIT;
        /* At least a dot. */
        svg_line(doc, x, place_y(most, top) - 0.8, x, place_y(least, top) + 0.8, "span");
    }
}

static void draw_row(struct doc *doc, const struct report_row *row)
{
    double top = highest(row), middle = facts_median(row->latencies_ms, row->latency_count);
    char caption[128], number[32];
    if (top <= 0)
        return;
    snprintf(caption, sizeof(caption), "%.24s: %s", row->label, doc_word(doc, WORD_FIGURE_LATENCY));
    svg_begin(doc, "latency", caption, WIDTH, HEIGHT, 260);
    svg_line(doc, LEFT, TOP, LEFT, HEIGHT - BOTTOM, "axis");
    svg_line(doc, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis");
    snprintf(number, sizeof(number), "%.3g", top);
    svg_text(doc, LEFT - 5, TOP + 8, "end", "tick", number, 8);
    svg_text(doc, LEFT - 5, HEIGHT - BOTTOM, "end", "tick", "0", 8);
    snprintf(number, sizeof(number), "%zu", row->latency_count);
    svg_text(doc, WIDTH - RIGHT, HEIGHT - 6, "end", "tick", number, 12);
    svg_text(doc, LEFT, HEIGHT - 6, "start", "tick", "1", 4);
    if (isfinite(middle)) {
        svg_line(doc, LEFT, place_y(middle, top), WIDTH - RIGHT, place_y(middle, top), "median");
        snprintf(number, sizeof(number), "%.3g", middle);
        /* Not on top of the number at the top or at the foot of the axis. */
        if (place_y(middle, top) > TOP + 18 && place_y(middle, top) < HEIGHT - BOTTOM - 15)
            svg_text(doc, LEFT - 5, place_y(middle, top) + 4, "end", "tick", number, 8);
    }
    draw_points(doc, row, top);
    svg_text(doc, LEFT + 6, 14, "start", "label", words_mode(doc->language, row->mode), 24);
    svg_end(doc, caption, NULL, 0);
}

void figure_latency(struct doc *doc, const struct report_facts *facts)
{
    text_add(doc->out, "<div class=\"plots\">\n");
    for (size_t i = 0; i < facts->row_count; i++)
        if (facts->rows[i].latency_count > 0)
            draw_row(doc, &facts->rows[i]);
    text_add(doc->out, "</div>\n");
}
