/* main.c - the program; everything is in cli_run, which tests can link. */
#include "cli/cli.h"

int main(int argument_count, char **arguments)
{
    return (int)cli_run(argument_count, arguments);
}
