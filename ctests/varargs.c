/*
 * The functions of the library that take variable arguments, which stable Rust cannot define.
 *
 * warn and warnx also exist in the C library: this object has to come before it when linking.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dat.h"

/* What the format makes, in memory from malloc; null without memory. */
static char *format_text(const char *format, va_list args)
{
    va_list again;
    char *text = NULL;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (len >= 0)
        text = malloc((size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, format, args);
    return text;
}

char *fmtalloc(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = format_text(format, args);
    va_end(args);
    return text;
}

/* One call to print a whole line: server and test share the stream. */
static void print_warning(const char *text, const char *reason)
{
    const char *name = progname ? progname : "";

    if (!text)
        text = "out of memory";
    if (reason)
        fprintf(stderr, "%s: %s: %s\n", name, text, reason);
    else
        fprintf(stderr, "%s: %s\n", name, text);
}

void warn(const char *format, ...)
{
    int error = errno;
    va_list args;
    char *text;

    va_start(args, format);
    text = format_text(format, args);
    va_end(args);
    print_warning(text, strerror(error));
    free(text);
    errno = error;
}

void warnx(const char *format, ...)
{
    int error = errno;
    va_list args;
    char *text;

    va_start(args, format);
    text = format_text(format, args);
    va_end(args);
    print_warning(text, NULL);
    free(text);
    errno = error;
}
