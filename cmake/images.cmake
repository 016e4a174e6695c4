# Decoding of images in sluice_core, or a stub that reports its absence.
find_package(JPEG)
find_package(PNG)
set(SLUICE_IMAGES_FOLDER src/data/images)
if(JPEG_FOUND AND PNG_FOUND)
  set(SLUICE_IMAGES ON)
  list(APPEND SLUICE_DEPENDENCIES JPEG PNG)
  target_sources(sluice_core PRIVATE
    ${SLUICE_IMAGES_FOLDER}/decode.cc ${SLUICE_IMAGES_FOLDER}/jpeg.cc ${SLUICE_IMAGES_FOLDER}/png.cc)
  target_link_libraries(sluice_core PRIVATE JPEG::JPEG PNG::PNG)
else()
  set(SLUICE_IMAGES OFF)
  target_sources(sluice_core PRIVATE ${SLUICE_IMAGES_FOLDER}/no_images.cc)
endif()
