# Writes a C++ source that defines an array with the bytes of a file, and their number.
# cmake -DINPUT=file -DOUTPUT=source.cpp -DSYMBOL=name -P Embed.cmake

file(READ "${INPUT}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}"
  "extern \"C\" {\nextern const unsigned char ${SYMBOL}[];\nextern const unsigned long ${SYMBOL}Size;\n"
  "const unsigned char ${SYMBOL}[] = {${bytes}};\nconst unsigned long ${SYMBOL}Size = ${size};\n}\n")
