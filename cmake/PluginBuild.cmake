# cmake -DSOURCE=folder -DTOOLCHAIN=text -DOUTPUT=file -P PluginBuild.cmake
#
# Writes a header with a digest of what the runtime and its plug-ins have to agree about: the headers of plug-ins with
# all that these include, without comments, and what they were compiled by. An edit of other files leaves it as it is.

cmake_minimum_required(VERSION 3.25)

set(names runtime/Device.h runtime/Transport.h)
set(text "${TOOLCHAIN}")
set(seen "")
while(names)
  list(POP_FRONT names name)
  if(name IN_LIST seen)
    continue()
  endif()
  list(APPEND seen "${name}")
  file(READ "${SOURCE}/${name}" content)
  string(REGEX MATCHALL "#include \"dovetail/[^\"]+\"" includes "${content}")
  list(TRANSFORM includes REPLACE "#include \"dovetail/([^\"]+)\"" "\\1")
  list(APPEND names ${includes})
  string(REGEX REPLACE "//[^\n]*" "" content "${content}")
  string(REGEX REPLACE "[ \t\n]+" " " content "${content}")
  string(APPEND text "\n${name}\n${content}")
endwhile()
string(SHA256 digest "${text}")
string(SUBSTRING "${digest}" 0 12 digest)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#ifndef DOVETAIL_RUNTIME_PLUGINBUILD_H
#define DOVETAIL_RUNTIME_PLUGINBUILD_H

namespace dovetail::runtime {

/// Differs between builds whose plug-ins cannot stand for each other.
inline constexpr const char *pluginBuild = "@digest@";

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PLUGINBUILD_H
]])
