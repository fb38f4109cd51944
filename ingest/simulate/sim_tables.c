/* SPDX-License-Identifier: Apache-2.0 */
/* sim_tables.c - what is sold, where, and in which money. Weights and prices are made up, in the order of real ones. */
#include "sim_world.h"

/* sigma is in doublings: a price deviates by a factor of 2^sigma. */
#define SIGMA(hundredths) ((uint32_t)(hundredths)*65536u / 100u)

const weir_sim_trade weir_sim_trades[] = {
    {5411, 200, 2400, SIGMA(100), 90, 5, 5, 0},
    {5812, 110, 2800, SIGMA(80), 80, 5, 15, 0},
    {5814, 90, 1100, SIGMA(70), 68, 4, 28, 0},
    {5541, 60, 5200, SIGMA(60), 94, 0, 6, 0},
    {5311, 50, 4500, SIGMA(110), 60, 30, 10, 0},
    {5651, 70, 5500, SIGMA(90), 40, 42, 18, 0},
    {5732, 50, 16000, SIGMA(130), 30, 58, 12, 0},
    {5912, 50, 1700, SIGMA(90), 78, 18, 4, 0},
    {5942, 25, 2100, SIGMA(80), 30, 58, 12, 0},
    {5945, 20, 3300, SIGMA(90), 40, 50, 10, 0},
    {4111, 60, 600, SIGMA(100), 25, 20, 55, 0},
    {4121, 30, 1800, SIGMA(70), 20, 5, 75, 0},
    {4511, 15, 21000, SIGMA(110), 0, 75, 25, 0},
    {7011, 20, 14000, SIGMA(100), 35, 48, 17, 0},
    {4814, 25, 2500, SIGMA(60), 10, 45, 45, 0},
    {4899, 40, 1100, SIGMA(40), 0, 40, 60, 0},
    {5816, 35, 1400, SIGMA(110), 0, 35, 65, 0},
    {5999, 60, 3600, SIGMA(120), 30, 58, 12, 0},
    {7832, 15, 2200, SIGMA(50), 45, 25, 30, 0},
    {8011, 15, 6000, SIGMA(100), 85, 15, 0, 0},
    {5200, 35, 4800, SIGMA(120), 75, 22, 3, 0},
    {5995, 15, 2900, SIGMA(90), 55, 40, 5, 0},
    {7298, 20, 4100, SIGMA(80), 75, 10, 15, 0},
    {WEIR_SIM_ATM_CODE, 75, 7000, SIGMA(100), 0, 0, 0, 100},
    {0, 0, 0, 0, 0, 0, 0, 0},
};

const weir_sim_country weir_sim_countries[WEIR_SIM_COUNTRIES] = {
    {"DE", "EUR", 260, 100}, {"FR", "EUR", 190, 105}, {"GB", "GBP", 120, 95}, {"IT", "EUR", 100, 95},
    {"ES", "EUR", 90, 85},   {"NL", "EUR", 60, 110},  {"PL", "PLN", 50, 300}, {"AT", "EUR", 40, 105},
    {"CH", "CHF", 30, 130},  {"SE", "SEK", 25, 1100}, {"US", "USD", 20, 115}, {"CZ", "CZK", 15, 1900},
};
