/* words_es.c - the words of a report, in Spanish. */
#include "report/words.h"

const struct words words_es = {
    .words = {
        [WORD_YES] = "sí",
        [WORD_NO] = "no",
        [WORD_TITLE] = "Informe de auditoría {1}",
        [WORD_CONTENTS] = "Contenido",
        [WORD_OUTCOME] = "Resultado",
        [WORD_SEVERITY] = "Severidad",
        [WORD_DATE] = "Fecha",
        [WORD_COMMIT] = "Commit",
        [WORD_AUTHOR] = "Autor",
        [WORD_MODEL] = "Modelo",
        [WORD_DEVICE] = "Dispositivo",
        [WORD_COMMAND] = "Comando",
        [WORD_PLANTED_FAULT] = "FALLO INYECTADO",
        [WORD_PLANTED_FIRED] = "se inyectó a propósito y se activó",
        [WORD_PLANTED_NEVER] = "debía inyectarse a propósito y nunca se activó",
        [WORD_PLANTED_UNKNOWN] =
            "debía inyectarse a propósito; ninguna ejecución llegó a decir si se activó",
        [WORD_SECTION_SUMMARY] = "Resumen ejecutivo",
        [WORD_HEADLINE_CLEAN] =
            "No se encontró nada en {1} {1|iteración registrada|iteraciones registradas}; se habría "
            "visto un fallo en más del {2} de las ejecuciones",
        [WORD_HEADLINE_CLEAN_EXACT] =
            "No se encontró nada; todo lo comprobable se comprobó y quedó refutado",
        [WORD_HEADLINE_PROVED] =
            "El fallo inyectado es la causa: las ejecuciones fallan con él y son correctas sin "
            "él",
        [WORD_HEADLINE_SEEN] = "visto: ",
        [WORD_HEADLINE_DEFECT] = "Una ejecución falló y ningún hallazgo dice por qué",
        [WORD_HEADLINE_NOT_SEEN] =
            "No se vio nada en {1} {1|iteración registrada|iteraciones registradas}; hacen falta al "
            "menos {3} para darlo por limpio",
        [WORD_HEADLINE_NOT_REPRODUCED] =
            "El fallo esperado no ocurrió en {1} {1|iteración|iteraciones}; se habría visto si "
            "ocurriera en más del {2} de las ejecuciones",
        [WORD_HEADLINE_INCONCLUSIVE] =
            "Sin decidir: {4} {4|hipótesis carece|hipótesis carecen} de evidencia",
        [WORD_HEADLINE_NEVER_FIRED] = "Sin decidir: el fallo inyectado nunca se activó",
        [WORD_HEADLINE_FIRED_UNSEEN] =
            "Sin decidir: el fallo inyectado se activó y ningún detector lo vio",
        [WORD_SUMMARY_CLEAN] =
            "{1} {1|iteración registrada|iteraciones registradas}; se habría visto un fallo en más "
            "del {2} de las ejecuciones (95 % de confianza). Cada hipótesis comprobable la examinó un detector que "
            "superó su autoprueba; las demás no se aplican aquí.",
        [WORD_SUMMARY_ROOT_CAUSE] = "Se encontró la causa raíz: {1}.",
        [WORD_SUMMARY_DEFECT_SEEN] =
            "Algo está mal. Se vio; aún no se sabe qué lo causó. Los próximos pasos dicen qué lo "
            "encontraría.",
        [WORD_SUMMARY_NOT_SEEN] =
            "No se vio nada en {1} {1|iteración registrada|iteraciones registradas}. Eso solo "
            "descarta fallos en más del {2} de las ejecuciones (95 % de confianza).",
        [WORD_SUMMARY_NOT_SEEN_FEW] =
            "No se vio nada en {1} {1|iteración registrada|iteraciones registradas}. Tan pocas no descartan nada.",
        [WORD_SUMMARY_NOT_REPRODUCED] =
            "El fallo esperado no ocurrió en {1} {1|iteración|iteraciones}: eso descarta solo "
            "fallos en más del {2} de las iteraciones (95 % de confianza) y no prueba que haya "
            "desaparecido.",
        [WORD_SUMMARY_INCONCLUSIVE] =
            "La evidencia no decide: {1} {1|hipótesis sigue|hipótesis siguen} sin conclusión. "
            "La tabla de hipótesis dice qué falta en cada una.",
        [WORD_IN_DETAIL] = "En detalle: {1}.",
        [WORD_EXPECTED_FAULT] = "Fallo esperado: `{1}`",
        [WORD_SUMMARY_COUNTS] =
            "{1} de {2} {2|iteración ejecutada|iteraciones ejecutadas}, en {3} {3|fila|filas}; "
            "{4} {4|error|errores}, {5} {5|hallazgo|hallazgos}.",
        [WORD_PARTIAL] =
            "Esta auditoría no terminó: lo que hay aquí es válido, pero no está completo. "
            "`greta audit --resume` con la carpeta de {1} la termina.",
        [WORD_SECTION_STAGE] = "Etapa exacta del fallo",
        [WORD_STAGE_NONE] = "No se localizó ningún fallo.",
        [WORD_STAGE] = "Atributo",
        [WORD_STAGE_CAUSE] = "Causa",
        [WORD_STAGE_CANDIDATE] = "Uno de los candidatos",
        [WORD_STAGE_SYMPTOM] = "Visto en",
        [WORD_STAGE_OTHER] = "Otra parte",
        [WORD_STAGE_SEEN] = "Se manifestó en",
        [WORD_STAGE_CALL] = "Llamada",
        [WORD_STAGE_LAYER] = "Capa",
        [WORD_STAGE_STEP] = "Paso",
        [WORD_STAGE_TENSOR] = "Tensor",
        [WORD_STAGE_BYTES] = "Bytes afectados",
        [WORD_STAGE_BUFFER] = "Búfer (operando)",
        [WORD_STAGE_TRACK] = "Flujo / hilo del anfitrión",
        [WORD_STAGE_GRAPH] = "Ejecución del grafo / nodo",
        [WORD_STAGE_ITERATION] = "Ejecución",
        [WORD_STAGE_SITE] = "Lugar de la llamada",
        [WORD_STAGE_EVENT] = "Evento",
        [WORD_MODE_NONE] = "toca",
        [WORD_MODE_READ] = "lee",
        [WORD_MODE_WRITE] = "escribe",
        [WORD_MODE_UPDATE] = "actualiza",
        [WORD_NEAR] = "Lo que hay en la dirección `{1}`:",
        [WORD_NEAR_LIVE] = "el búfer vivo `{1}` en `{2}`, {3}, la contiene",
        [WORD_NEAR_BEFORE] =
            "búfer vivo anterior más cercano: `{1}` en `{2}`, {3}, a {4} {4|byte|bytes}",
        [WORD_NEAR_AFTER] =
            "búfer vivo posterior más cercano: `{1}` en `{2}`, {3}, a {4} {4|byte|bytes}",
        [WORD_NEAR_FREED] =
            "el búfer liberado `{1}` en `{2}`, {3}, fue el último en contenerla",
        [WORD_NEAR_NOTHING] = "ningún búfer, vivo ni liberado, a menos de {1}",
        [WORD_CANDIDATES] = "Pudo ser cualquiera de {1} lanzamientos:",
        [WORD_SECTION_FINDINGS] = "Hallazgos",
        [WORD_SECTION_CALLERS] = "Quién llamó",
        [WORD_CALLED_BY] = "A `{1}` (evento {2}) lo llamó",
        [WORD_NUMBER] = "N.º",
        [WORD_CERTAINTY] = "Certeza",
        [WORD_FINDING] = "Hallazgo",
        [WORD_TIMES] = "Veces",
        [WORD_RELATION] = "Relación",
        [WORD_DIRECT] = "violación observada",
        [WORD_POSSIBLE] = "posible",
        [WORD_FOLLOWS_FROM] = "consecuencia de {1}",
        [WORD_FIRST_VIOLATION] = "primera violación",
        [WORD_FINDINGS_DROPPED] = "Hallazgos contados y no conservados: {1}.",
        [WORD_SECTION_VERDICTS] = "Hipótesis",
        [WORD_VERDICTS_READING] =
            "Un veredicto nunca es más cierto que su evidencia: los detectores exactos dicen "
            "cuántos de todos los accesos declarados comprobaron; los estadísticos, qué tan "
            "raro debe ser un fallo para no haberse visto (3/n, 95 % de confianza).",
        [WORD_RANK] = "N.º",
        [WORD_HYPOTHESIS] = "Hipótesis",
        [WORD_VERDICT] = "Veredicto",
        [WORD_EVIDENCE] = "Evidencia",
        [WORD_MISSING] = "Qué falta",
        [WORD_NEEDS_LEVEL] = "Nivel necesario",
        [WORD_SELF_TEST] = "Autoprueba",
        [WORD_SELF_TEST_ABSENT] = "no hecha",
        [WORD_SELF_TEST_PASSED] = "superada",
        [WORD_SELF_TEST_FAILED] = "no superada",
        [WORD_EVIDENCE_EXACT] = "Se comprobaron {1} de {2} {3}, para accesos declarados.",
        [WORD_EVIDENCE_STATISTICAL] = "Se observaron {1} de {2} {3}.",
        [WORD_EVIDENCE_NO_BOUND] =
            "Se observaron {1} de {2} {3}. Nada visto en {5} {5|ejecución|ejecuciones}; tan pocas no "
            "descartan nada.",
        [WORD_EVIDENCE_BOUND] =
            "Se observaron {1} de {2} {3}. Nada visto en {5} {5|ejecución|ejecuciones}; eso descarta "
            "solo fallos en más del {4} de las ejecuciones.",
        [WORD_EVIDENCE_BOUND_EACH] =
            "Se observaron {1} de {2} {3}. Nada visto; eso descarta solo fallos en más del {4} de "
            "los casos.",
        [WORD_EVIDENCE_NONE] = "La ruta no se recorrió: 0 {3}.",
        [WORD_EVIDENCE_EXCLUDED] = "No aplicable: {1}.",
        [WORD_EXCLUDED_DEVICE_CLOSE] = "el dispositivo libera todo al cerrarse",
        [WORD_SECTION_DETECTORS] = "Cómo se detecta cada una",
        [WORD_SECTION_RECOMMENDATIONS] = "Recomendaciones",
        [WORD_ADVICE_CLEAN] =
            "No hay nada que corregir. Conserve esta auditoría para comparar con ella el "
            "próximo cambio.",
        [WORD_ADVICE_NONE] =
            "Ninguna causa está confirmada, por lo que no se recomienda ningún cambio en el "
            "código; los próximos pasos dicen qué lo decidiría.",
        [WORD_SECTION_NEXT_STEPS] = "Próximos pasos",
        [WORD_NEXT_CLEAN] =
            "Compare las auditorías posteriores con esta: `greta audit --baseline` con la "
            "carpeta de {1}.",
        [WORD_NEXT_ROOT_CAUSE] =
            "Corríjalo y repita el mismo comando con `--baseline` y la carpeta de {1}; después "
            "revierta el arreglo y compruebe que el fallo vuelve: solo eso demuestra el "
            "arreglo.",
        [WORD_NEXT_DEFECT_SEEN] =
            "Revise dónde se vio y qué se ejecutó antes. Repita la auditoría {1} con el nivel "
            "`verify`; más iteraciones dan más que comparar a la búsqueda del culpable.",
        [WORD_NEXT_NOT_SEEN] =
            "{2} {2|iteración registrada|iteraciones registradas}; hacen falta al menos {3}. Repita "
            "la auditoría {1} con una `--matrix` mayor.",
        [WORD_NEXT_NARROW] =
            "Ejecute el mismo comando con `--narrow`: espera tras cada uno de los lanzamientos, "
            "hasta que quede uno.",
        [WORD_NEXT_NOT_REPRODUCED] =
            "Ejecute más iteraciones para descartar fallos más raros, o averigüe qué era "
            "distinto cuando se vio por primera vez el fallo de {1}: modelo, prompt, "
            "dispositivo, controlador, entorno.",
        [WORD_NEXT_INCONCLUSIVE] =
            "Haga decidibles las hipótesis que siguen y repita la auditoría {1}.",
        [WORD_NEXT_RESUME] =
            "Termine esta auditoría: `greta audit --resume` con la carpeta de {1}.",
        [WORD_STEP_NOTHING] = "Revise estas: {1}.",
        [WORD_STEP_DETECTOR] = "El detector estaba desactivado. Repita con él activado: {1}.",
        [WORD_STEP_LEVEL] =
            "Las ejecuciones estaban por debajo del nivel necesario. Repita con el nivel de "
            "la tabla (`--audit guard` o `--audit verify`): {1}.",
        [WORD_STEP_SELF_TEST] =
            "No hay autoprueba de este binario en este dispositivo. Ejecute antes `greta "
            "audit --self-test`: {1}.",
        [WORD_STEP_SELF_TEST_PASS] =
            "La autoprueba no encontró aquí su fallo inyectado; corrija el detector antes de "
            "confiar en él: {1}.",
        [WORD_STEP_RECORDS] =
            "Se perdieron o dañaron registros. Repita con una grabación mayor, menos "
            "iteraciones por fila o más espacio en el disco: {1}.",
        [WORD_STEP_EXERCISE] =
            "La ruta no se recorrió. Use una carga que la recorra (más flujos, prompts más "
            "largos, grafos, estrés): {1}.",
        [WORD_STEP_EQUAL_RUNS] =
            "No hubo dos iteraciones iguales, así que nada se pudo comparar. Repita con dos o más "
            "iteraciones en una fila de modo `audit`: {1}.",
        [WORD_STEP_CERTAINTY] =
            "Quedan varias explicaciones. Repita cambiando una sola cosa cada vez: {1}.",
        [WORD_STEP_COMPARISON] =
            "Solo una comparación lo decide. Ejecute `greta audit --transfers` y `greta audit "
            "--ablate d2h`: {1}.",
        [WORD_STEP_END] =
            "Una ejecución no terminó y nada dice por qué. Lea su registro y repita con el "
            "nivel `guard`: {1}.",
        [WORD_SECTION_MATRIX] = "Matriz de pruebas",
        [WORD_MATRIX_NONE] = "No se ejecutó ninguna fila.",
        [WORD_MATRIX_WORKLOADS] =
            "Las iteraciones son ejecuciones del modelo. Después de ellas cada fila ejecuta "
            "rondas de una carga pequeña con varios flujos, marcas, grafos y ranuras "
            "intermedias, para examinar lo que un solo flujo no puede mostrar; sus errores se "
            "cuentan con los de la fila. Las ejecuciones se numeran en conjunto.",
        [WORD_ROW] = "Fila",
        [WORD_MODE] = "Modo",
        [WORD_LEVEL] = "Nivel",
        [WORD_ITERATIONS] = "Iteraciones",
        [WORD_ERRORS] = "Errores",
        [WORD_RESULT] = "Resultado",
        [WORD_MEDIAN_MS] = "Latencia mediana, ms",
        [WORD_TOKENS_PER_SECOND] = "Tokens por segundo",
        [WORD_PEAK] = "Memoria máxima",
        [WORD_LAUNCHES] = "Lanzamientos",
        [WORD_COPIES_OUT] = "Copias D2H",
        [WORD_TOTAL] = "Total",
        [WORD_ROW_PASSED] = "CORRECTA",
        [WORD_ROW_FAILED] = "FALLÓ",
        [WORD_ROW_CRASHED] = "CAÍDA",
        [WORD_ROW_HUNG] = "COLGADA",
        [WORD_ROW_FINDINGS] = "CON HALLAZGOS",
        [WORD_ROW_INTERRUPTED] = "INTERRUMPIDA",
        [WORD_ROW_INCONCLUSIVE] = "NO CONCLUYENTE",
        [WORD_ROW_INCOMPLETE] = "INCOMPLETA",
        [WORD_ROW_ERROR] = "{1}: primer error: `{2}`",
        [WORD_ROW_MISSING] = "{1}: falta evidencia: `{2}`",
        [WORD_ROW_PARAMETERS] = "{1}: parámetros de estrés: `{2}`",
        [WORD_ROW_LOG] = "{1}: registro: ",
        [WORD_ROW_FLIGHT] = "{1}: grabación: ",
        [WORD_ROW_ANALYSIS] =
            "{1}: {2} {2|evento|eventos} de {3} {3|ejecución|ejecuciones} analizados; {4} "
            "perdidos, {5} descartados, {6} dañados.",
        [WORD_ROW_EXTRA] =
            " De ellas, {1} {1|es una iteración|son iteraciones} del modelo y {2} {2|es una "
            "ronda|son rondas} de la carga pequeña.",
        [WORD_ROW_DEVICE_LOST] = " El dispositivo se perdió.",
        [WORD_ROW_NOT_CLOSED] = " El proceso no terminó en orden.",
        [WORD_ROW_NO_ANALYSIS] = "{1}: no se grabaron ni analizaron eventos.",
        [WORD_SECTION_INTERVENTIONS] = "Intervenciones",
        [WORD_INTERVENTIONS_READING] =
            "Repeticiones con una sola cosa cambiada, alternadas con otras sin el cambio. Un "
            "resultado se invierte cuando el fallo desaparece con el cambio y aparece sin él.",
        [WORD_CHANGED] = "Cambio",
        [WORD_WITH_CHANGE] = "Fallos con él",
        [WORD_WITHOUT_CHANGE] = "Fallos sin él",
        [WORD_FLIPS] = "Se invierte",
        [WORD_PROVES] = "Prueba",
        [WORD_DOES_NOT_PROVE] = "No prueba",
        [WORD_SECTION_ABLATION] = "Modos D2H (ablación)",
        [WORD_ABLATION_READING] = "Un arreglo solo cuenta si al revertirlo vuelve el fallo.",
        [WORD_D2H_MODE] = "Modo D2H",
        [WORD_RUNS] = "Ejecuciones",
        [WORD_FAULTS] = "Fallos",
        [WORD_FAULT_SEEN] = "FALLO",
        [WORD_NO_FAULT_SEEN] = "SIN FALLO",
        [WORD_SECTION_TRANSFERS] = "Transferencias",
        [WORD_TRANSFERS_READING] =
            "Cada copia se comprobó con un hash antes y después, en el dispositivo y en el "
            "anfitrión.",
        [WORD_TRANSFERS_SUM] =
            "{1} {1|ruta|rutas} de copia: {2} {2|copia|copias}, {3}, {4} "
            "{4|diferencia|diferencias}.",
        [WORD_COPY_PATH] = "Ruta de copia",
        [WORD_COPIES] = "Copias",
        [WORD_BYTES] = "Bytes",
        [WORD_MISMATCHES] = "Diferencias",
        [WORD_BOUND] = "Descarta más del",
        [WORD_GIGABYTES] = "GB/s",
        [WORD_NOTE] = "Nota",
        [WORD_SECTION_SELF_TEST] = "Autoprueba",
        [WORD_SELF_TEST_KEY] = "Los resultados de la autoprueba valen para `{1}`.",
        [WORD_SELF_TEST_NO_KEY] =
            "No hay resultados de autoprueba para este binario en este dispositivo.",
        [WORD_SELF_TEST_TOTAL] = "{1} inyectados, {2} encontrados, {3} con el culpable correcto.",
        [WORD_FAULT] = "Fallo",
        [WORD_PLANTED_AS] = "Inyectado como",
        [WORD_PLANTED_AT] = "Inyectado en",
        [WORD_DETECTED] = "Detectado",
        [WORD_FOUND_AS] = "Hallado como",
        [WORD_CULPRIT] = "Culpable señalado",
        [WORD_CULPRIT_OK] = "Culpable correcto",
        [WORD_SECTION_EVOLUTION] = "Evolución del diagnóstico",
        [WORD_EVOLUTION_NONE] = "Es la primera auditoría de su carpeta.",
        [WORD_AUDIT] = "Auditoría",
        [WORD_DEFECT] = "Defecto",
        [WORD_ROOT_CAUSE] = "Causa raíz",
        [WORD_SECTION_BASELINE] = "Comparación con la base",
        [WORD_BASELINE_READING] = "Comparada con la auditoría `{1}`.",
        [WORD_BASELINE_EQUAL] =
            "Ningún hallazgo es nuevo, ha desaparecido ni ha cambiado.",
        [WORD_CHANGE] = "Cambio",
        [WORD_CHANGE_NEW] = "NUEVO",
        [WORD_CHANGE_GONE] = "DESAPARECIDO",
        [WORD_CHANGE_CHANGED] = "CAMBIADO",
        [WORD_CHANGE_SAME] = "IGUAL",
        [WORD_FIGURE] = "Magnitud",
        [WORD_BEFORE] = "Antes",
        [WORD_NOW] = "Ahora",
        [WORD_SECTION_ARTIFACTS] = "Archivos de esta auditoría",
        [WORD_FILE_MANIFEST] = "qué se ejecutó, dónde y con qué hashes",
        [WORD_FILE_SUMMARY] = "veredictos y hallazgos para programas",
        [WORD_FILE_ENGLISH] = "este informe en inglés",
        [WORD_FILE_SPANISH] = "este informe en español",
        [WORD_FILE_HTML] = "este informe con figuras",
        [WORD_FILE_TIMELINE] =
            "flujos, copias y esperas en el tiempo; se abre en Perfetto",
        [WORD_FILE_SARIF] = "hallazgos para el análisis de código",
        [WORD_FILE_JUNIT] = "filas, hipótesis y fallos inyectados para un servidor de integración",
        [WORD_FILE_LOG] = "lo que imprimió el proceso hijo",
        [WORD_FILE_FLIGHT] = "grabación de los eventos del dispositivo",
        [WORD_SECTION_EVIDENCE] = "A qué está ligada la evidencia",
        [WORD_EVIDENCE_READING] =
            "Los veredictos valen exactamente para este binario, modelo, dispositivo y comando.",
        [WORD_WHAT] = "Qué",
        [WORD_VALUE] = "Valor",
        [WORD_VERSION] = "Versión de greta",
        [WORD_BINARY_HASH] = "SHA-256 del binario",
        [WORD_MODEL_FILE] = "Archivo del modelo",
        [WORD_MODEL_HASH] = "SHA-256 del modelo",
        [WORD_DEVICE_KIND] = "Tipo de dispositivo",
        [WORD_DRIVER] = "Controlador",
        [WORD_DEVICE_MEMORY] = "Memoria del dispositivo",
        [WORD_SEED] = "Semilla",
        [WORD_LOCKED] = "Ejecución bajo bloqueo exclusivo",
        [WORD_ENVIRONMENT] = "Entorno:",
        [WORD_PLACE_LAYER] = "capa {1}",
        [WORD_PLACE_STEP] = "paso {1}",
        [WORD_PLACE_TENSOR] = "tensor {1}",
        [WORD_PLACE_STREAM] = "flujo {1}",
        [WORD_NO_RECORDING] = "No hay grabación de la que dibujar una línea de tiempo.",
        [WORD_FIGURE_CHAIN] = "De la causa al lugar donde se vio el error",
        [WORD_FIGURE_PLACE] = "Dónde fue",
        [WORD_CHAIN_CAUSE] = "causa",
        [WORD_CHAIN_CANDIDATE] = "uno de varios candidatos",
        [WORD_CHAIN_OTHER] = "otra parte",
        [WORD_CHAIN_SEEN] = "visto aquí",
        [WORD_CHAIN_SURFACED] = "se manifestó aquí",
        [WORD_CHAIN_LATER] = "{1} ms después, evento {2}",
        [WORD_CHAIN_EARLIER] = "{1} ms antes, evento {2}",
        [WORD_CHAIN_FOLLOWING] = "De ello {1|se sigue|se siguen} {1} {1|hallazgo|hallazgos}.",
        [WORD_FIGURE_TIMELINE] =
            "Flujos en torno al hallazgo, en ms desde el inicio de la grabación; las esperas se "
            "cortan donde termina el trabajo",
        [WORD_FIGURE_TIMELINE_WHOLE] =
            "Flujos al final de la grabación, en ms desde su inicio",
        [WORD_TIMELINE_HOST] = "anfitrión",
        [WORD_TIMELINE_CALLS] = "Las barras son las llamadas: no se grabó cuándo terminó el trabajo mismo.",
        [WORD_LEGEND_LAUNCH] = "lanzamiento",
        [WORD_LEGEND_COPY] = "copia o relleno",
        [WORD_LEGEND_WAIT] = "espera",
        [WORD_LEGEND_CAUSE] = "causa",
        [WORD_LEGEND_FAILED] = "fallida o rechazada",
        [WORD_FIGURE_LATENCY] = "Latencia de cada iteración, en ms",
        [WORD_FIGURE_MEMORY] =
            "Búferes en el orden de sus direcciones, como estaban cuando se vio el error; las "
            "barras están en escala logarítmica",
        [WORD_MEMORY_MAP] = "Mapa de memoria",
        [WORD_MEMORY_FAULT] = "dirección del fallo",
        [WORD_MEMORY_LIVE] = "vivo",
        [WORD_MEMORY_FREED] = "liberado",
        [WORD_MEMORY_NAMED] = "nombrado por el hallazgo",
        [WORD_MEMORY_MORE] = "Búferes no dibujados: {1}.",
        [WORD_SECTION_SEARCH] = "Búsqueda de la causa",
        [WORD_SEARCH_READING] = "Ejecuciones iguales de nuevo, cada una en su proceso, con el "
                                "hash de los operandos en el orden del flujo (o examinando las "
                                "salidas). La primera operación cuyas entradas coinciden y cuya "
                                "salida no es la culpable.",
        [WORD_LOOKED_AT] = "Qué se examinó",
        [WORD_COMPARED] = "Comparados",
        [WORD_SEARCH_CULPRIT] = "culpable",
        [WORD_SEARCH_INTERVAL] = "intervalo",
        [WORD_SEARCH_SEEN] = "visto, ninguna operación lo muestra",
        [WORD_SEARCH_NOT_SEEN] = "no visto",
        [WORD_SEARCH_FOUND] = "Se conoce la operación que lo produjo: vea la causa raíz.",
        [WORD_SEARCH_NARROWED] = "Lo que lo produjo está entre las dos operaciones que nombra el "
                                 "hallazgo. Es un intervalo, no un culpable.",
        [WORD_SEARCH_ONLY_SEEN] = "El defecto volvió a aparecer y ninguna operación examinada lo "
                                  "muestra: véase en el hallazgo dónde se vio.",
        [WORD_SEARCH_NOT_AGAIN] = "El defecto no volvió a aparecer en estas ejecuciones: es raro, "
                                  "o necesita lo que cambia una búsqueda. Con más iteraciones de "
                                  "la fila puede volver.",
        [WORD_SEARCH_VANISHED] = "No apareció mientras se examinaba cada operación: examinar "
                                 "cambia los tiempos, y la diferencia depende de ellos. Por eso "
                                 "se examinó menos.",
        [WORD_SECTION_COMPARE] = "Operaciones frente al anfitrión",
        [WORD_COMPARE_READING] = "Cada operación de una ejecución otra vez en el anfitrión, con "
                                 "las entradas del propio dispositivo, para que un error no pase "
                                 "de una operación a la siguiente. El error es relativo al mayor "
                                 "valor de su fila.",
        [WORD_OP] = "Operación",
        [WORD_TYPE] = "Tipo",
        [WORD_ERROR_MAX] = "Mayor error",
        [WORD_TOLERANCE] = "Tolerancia",
        [WORD_OUTSIDE] = "Fuera",
        [WORD_ERROR_WHERE] = "Dónde",
    },
    .outcomes = {
        [AUDIT_CLEAN] = "LIMPIO",
        [AUDIT_ROOT_CAUSE] = "CAUSA RAÍZ ENCONTRADA",
        [AUDIT_DEFECT_SEEN] = "DEFECTO VISTO",
        [AUDIT_NOT_SEEN] = "NO VISTO",
        [AUDIT_NOT_REPRODUCED] = "NO REPRODUCIDO",
        [AUDIT_INCONCLUSIVE] = "NO CONCLUYENTE",
    },
    .verdicts = {
        [VERDICT_CONFIRMED] = "CONFIRMADA",
        [VERDICT_REFUTED] = "REFUTADA",
        [VERDICT_NOT_SEEN] = "NO VISTA",
        [VERDICT_EXCLUDED] = "EXCLUIDA",
        [VERDICT_INCONCLUSIVE] = "NO CONCLUYENTE",
    },
    .severities = {
        [REPORT_SEVERITY_NONE] = "Ninguna",
        [REPORT_SEVERITY_MEDIUM] = "Media",
        [REPORT_SEVERITY_HIGH] = "Alta",
        [REPORT_SEVERITY_CRITICAL] = "Crítica",
    },
    .modes = {
        [REPORT_BARE] = "sin registro",
        [REPORT_AUDIT] = "auditoría",
        [REPORT_STRESS] = "estrés",
    },
    .interventions = {
        { "serialised", "cada llamada espera a la anterior" },
        { "one-at-a-time", "una espera tras cada lanzamiento, para dejar un solo candidato" },
        { "single-stream", "un solo flujo" },
        { "guards", "páginas de guarda y veneno" },
        { "pinned", "tránsito en memoria fijada" },
        { "pageable", "tránsito en memoria paginable" },
        { "sync-copies", "esperas antes y después de cada copia al anfitrión" },
        { "chunking", "otra división del prompt" },
        { "injected-removed", "fallo inyectado retirado" },
    },
};
