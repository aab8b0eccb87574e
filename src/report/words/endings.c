/* endings.c - how a run ended, in words. */
#include "report/finding.h"
#include "report/words.h"

#include <signal.h>

static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = { { SIGABRT, " (SIGABRT)" }, { SIGALRM, " (SIGALRM)" }, { SIGBUS, " (SIGBUS)" },
                  { SIGFPE, " (SIGFPE)" },   { SIGHUP, " (SIGHUP)" },   { SIGILL, " (SIGILL)" },
                  { SIGINT, " (SIGINT)" },   { SIGKILL, " (SIGKILL)" }, { SIGPIPE, " (SIGPIPE)" },
                  { SIGQUIT, " (SIGQUIT)" }, { SIGSEGV, " (SIGSEGV)" }, { SIGSTOP, " (SIGSTOP)" },
                  { SIGSYS, " (SIGSYS)" },   { SIGTERM, " (SIGTERM)" }, { SIGTRAP, " (SIGTRAP)" },
                  { SIGTSTP, " (SIGTSTP)" }, { SIGTTIN, " (SIGTTIN)" }, { SIGTTOU, " (SIGTTOU)" },
                  { SIGUSR1, " (SIGUSR1)" }, { SIGUSR2, " (SIGUSR2)" }, { SIGXCPU, " (SIGXCPU)" },
                  { SIGXFSZ, " (SIGXFSZ)" } };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].number == number)
            return names[i].name;
    return "";
}

void report_ending_words(struct run_ending ending, enum report_language language, struct text *text)
{
    bool spanish = language == REPORT_SPANISH;
    switch (ending.kind) {
    case ENDING_IN_ORDER:
        text_add(text, spanish ? "en orden" : "in order");
        break;
    case ENDING_EXITED:
        text_addf(text, spanish ? "terminó con el código %d" : "exited with %d", ending.number);
        break;
    case ENDING_KILLED:
    case ENDING_ABORTED:
        text_addf(text,
                  ending.kind == ENDING_KILLED
                      ? (spanish ? "terminado por la señal %d%s" : "killed by signal %d%s")
                      : (spanish ? "abortado por la señal %d%s" : "aborted by signal %d%s"),
                  ending.number, signal_name(ending.number));
        break;
    case ENDING_OUT_OF_MEMORY:
        text_add(text, spanish ? "terminado por falta de memoria (OOM killer del kernel)"
                               : "killed by the kernel's out-of-memory killer");
        break;
    case ENDING_HUNG:
        text_add(text, spanish ? "colgado: sin avance" : "hung: no progress");
        break;
    case ENDING_STOPPED:
        text_addf(text,
                  spanish ? "detenido por la señal %d%s y no reanudado"
                          : "stopped by signal %d%s and not continued",
                  ending.number, signal_name(ending.number));
        break;
    case ENDING_DEVICE_LOST:
        text_add(text, spanish ? "dispositivo perdido" : "device lost");
        break;
    case ENDING_UNCLOSED:
        text_add(text, spanish ? "terminó sin cerrar la grabación"
                               : "ended without closing the recording");
        break;
    case ENDING_UNKNOWN:
    case ENDING_COUNT:
        text_add(text, spanish ? "no se vio su fin" : "not seen to end");
        break;
    }
}

void report_gate_words(int32_t exit_code, bool nothing_checked, enum report_language language,
                       struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    words_add_line(text, language, nothing_checked ? WORD_GATE_NOTHING : WORD_GATE_INCONCLUSIVE,
                   words_number((uint64_t)exit_code, number), NULL);
}
