# Writes a C++ source that defines a string with the contents of a file.
# cmake -DINPUT=file -DOUTPUT=source.cpp -DSYMBOL=name -P EmbedText.cmake

file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "extern \"C\" const char ${SYMBOL}[] = R\"TEXT(${text})TEXT\";\n")
