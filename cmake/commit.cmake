# Run at every build (-P): writes OUT with the commit the source is at, "-dirty" if it was changed
# since; an empty text where there is no git. Touches the file only when that changes.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
                OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE failed)
if(failed)
    set(commit "")
else()
    execute_process(COMMAND git status --porcelain --untracked-files=no WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(NOT changes STREQUAL "")
        string(APPEND commit "-dirty")
    endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define GRETA_COMMIT \"@commit@\"\n" @ONLY)
