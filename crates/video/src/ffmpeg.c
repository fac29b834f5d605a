// What is needed of libavcodec, behind one kind of handle. Every access to a struct of FFmpeg is here, compiled against the
// headers of the installed release, so that nothing in Rust depends on how that lays them out. Nothing is decided here but
// whether what libavcodec gives is whole; ffmpeg.rs has the rest. Codes are FFmpeg's: 0 or a negative number.

#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <stdlib.h>
#include <string.h>

// An encoder or a decoder.
struct wayferry_codec {
    AVCodecContext *context;
    AVFrame *frame;
    AVFrame *staged; // of an encoder that takes only pictures in its GPU's memory: the one that goes there
    AVPacket *packet;
    int64_t number; // of the frame last
    int rows;       // that have been decoded of it
};

// For the whole process, and not while codecs are at work.
void wayferry_quiet(void)
{
    av_log_set_level(AV_LOG_QUIET);
}

void wayferry_close(struct wayferry_codec *codec)
{
    if (!codec)
        return;
    avcodec_free_context(&codec->context);
    av_frame_free(&codec->frame);
    av_frame_free(&codec->staged);
    av_packet_free(&codec->packet);
    free(codec);
}

// Everything but the codec itself; NULL also when there is none of that name.
static struct wayferry_codec *allocate(const AVCodec *named)
{
    struct wayferry_codec *codec = named ? calloc(1, sizeof *codec) : NULL;
    if (!codec)
        return NULL;
    codec->context = avcodec_alloc_context3(named);
    codec->frame = av_frame_alloc();
    codec->packet = av_packet_alloc();
    if (codec->context && codec->frame && codec->packet)
        return codec;
    wayferry_close(codec);
    return NULL;
}

// Opens it with these options; those that this release does not have mean nothing.
static struct wayferry_codec *opened(struct wayferry_codec *codec, const char *options)
{
    AVDictionary *more = NULL;
    int code = av_dict_parse_string(&more, options, "=", ":", 0);
    if (code >= 0)
        code = avcodec_open2(codec->context, NULL, &more);
    av_dict_free(&more);
    if (code >= 0)
        return codec;
    wayferry_close(codec);
    return NULL;
}

// Bits per second, and how many bits frames may be ahead of that. Encoders that can follow do so with the next frame.
void wayferry_encoder_rate(struct wayferry_codec *encoder, int bitrate, int ahead)
{
    encoder->context->bit_rate = bitrate;
    encoder->context->rc_max_rate = bitrate;
    encoder->context->rc_buffer_size = ahead;
}

// Pictures for this encoder are in the memory of a GPU of this kind, and come there from NV12.
static int put_on(struct wayferry_codec *encoder, const char *device)
{
    AVCodecContext *context = encoder->context;
    enum AVHWDeviceType kind = av_hwdevice_find_type_by_name(device);
    AVBufferRef *gpu = NULL;
    int code = av_hwdevice_ctx_create(&gpu, kind, NULL, NULL, 0);
    if (code < 0)
        return code;
    context->hw_frames_ctx = av_hwframe_ctx_alloc(gpu);
    av_buffer_unref(&gpu);
    AVFrame *staged = encoder->staged = av_frame_alloc();
    if (!context->hw_frames_ctx || !staged)
        return AVERROR(ENOMEM);
    AVHWFramesContext *pool = (AVHWFramesContext *)context->hw_frames_ctx->data;
    pool->format = kind == AV_HWDEVICE_TYPE_VAAPI ? AV_PIX_FMT_VAAPI : AV_PIX_FMT_VULKAN;
    pool->sw_format = AV_PIX_FMT_NV12;
    pool->width = staged->width = context->width;
    pool->height = staged->height = context->height;
    pool->initial_pool_size = 4;
    context->pix_fmt = pool->format;
    staged->format = AV_PIX_FMT_NV12;
    code = av_hwframe_ctx_init(context->hw_frames_ctx);
    return code < 0 ? code : av_frame_get_buffer(staged, 0);
}

// An encoder of this name, NULL if there is none or it does not open; `device` is NULL if it takes pictures from here.
struct wayferry_codec *wayferry_encoder_open(const char *name, const char *options, const char *device, int width,
                                             int height, int frames_per_second, int bitrate, int ahead, int finest,
                                             int coarsest)
{
    struct wayferry_codec *encoder = allocate(avcodec_find_encoder_by_name(name));
    if (!encoder)
        return NULL;
    AVCodecContext *context = encoder->context;
    context->width = width;
    context->height = height;
    context->pix_fmt = AV_PIX_FMT_YUV420P;
    context->time_base = (AVRational){1, frames_per_second};
    context->framerate = (AVRational){frames_per_second, 1};
    context->qmin = finest;
    context->qmax = coarsest;
    context->thread_count = 1;
    context->slices = 1;
    context->refs = 1;
    context->max_b_frames = 0;
    context->gop_size = 1 << 20; // key frames are asked for
    context->color_range = AVCOL_RANGE_MPEG;
    context->colorspace = AVCOL_SPC_BT709;
    context->color_primaries = AVCOL_PRI_BT709;
    context->color_trc = AVCOL_TRC_BT709;
    wayferry_encoder_rate(encoder, bitrate, ahead);
    if (device && put_on(encoder, device) < 0) {
        wayferry_close(encoder);
        return NULL;
    }
    return opened(encoder, options);
}

// A picture as NV12, in the memory of the encoder's GPU.
static int upload(struct wayferry_codec *encoder, const uint8_t *const planes[3], const int strides[3])
{
    AVFrame *staged = encoder->staged;
    int code = av_frame_make_writable(staged);
    if (code < 0)
        return code;
    for (int y = 0; y < staged->height; y++)
        memcpy(staged->data[0] + y * staged->linesize[0], planes[0] + y * strides[0], staged->width);
    for (int y = 0; y < staged->height / 2; y++) {
        const uint8_t *u = planes[1] + y * strides[1], *v = planes[2] + y * strides[2];
        uint8_t *pairs = staged->data[1] + y * staged->linesize[1];
        for (int x = 0; x < staged->width / 2; x++) {
            pairs[2 * x] = u[x];
            pairs[2 * x + 1] = v[x];
        }
    }
    code = av_hwframe_get_buffer(encoder->context->hw_frames_ctx, encoder->frame, 0);
    return code < 0 ? code : av_hwframe_transfer_data(encoder->frame, staged, 0);
}

// The same where the encoder takes it from here: only read, for what has no reference counter is copied.
static void lend(AVFrame *frame, const uint8_t *const planes[3], const int strides[3])
{
    for (int plane = 0; plane < 3; plane++) {
        frame->data[plane] = (uint8_t *)planes[plane];
        frame->linesize[plane] = strides[plane];
    }
    frame->format = AV_PIX_FMT_YUV420P;
}

// One picture in, its frame out: `data` is the encoder's until it is called again. A frame that is late is an error.
int wayferry_encode(struct wayferry_codec *encoder, const uint8_t *const planes[3], const int strides[3], int key,
                    const uint8_t **data, int *length)
{
    AVFrame *frame = encoder->frame;
    AVPacket *packet = encoder->packet;
    int code = 0;
    if (encoder->staged)
        code = upload(encoder, planes, strides);
    else
        lend(frame, planes, strides);
    if (code < 0) {
        av_frame_unref(frame);
        return code;
    }
    frame->width = encoder->context->width;
    frame->height = encoder->context->height;
    frame->pts = ++encoder->number;
    frame->pict_type = key ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
    code = avcodec_send_frame(encoder->context, frame);
    av_frame_unref(frame);
    if (!code)
        code = avcodec_receive_packet(encoder->context, packet);
    if (code)
        return code;
    *data = packet->data;
    *length = packet->size;
    return packet->pts == encoder->number ? 0 : AVERROR(EAGAIN);
}

static void count_rows(AVCodecContext *context, const AVFrame *frame, int offset[AV_NUM_DATA_POINTERS], int y, int type,
                       int height)
{
    (void)frame, (void)offset, (void)y, (void)type;
    ((struct wayferry_codec *)context->opaque)->rows += height;
}

// A decoder of H.264, NULL if this libavcodec has none of its own.
struct wayferry_codec *wayferry_decoder_open(void)
{
    struct wayferry_codec *decoder = allocate(avcodec_find_decoder_by_name("h264"));
    if (!decoder)
        return NULL;
    AVCodecContext *context = decoder->context;
    context->flags |= AV_CODEC_FLAG_LOW_DELAY;
    context->thread_count = 1;
    context->error_concealment = 0;
    context->err_recognition = AV_EF_EXPLODE | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_CAREFUL | AV_EF_AGGRESSIVE;
    context->opaque = decoder;
    context->draw_horiz_band = count_rows;
    return opened(decoder, "");
}

// One frame in, its picture of this size out: `planes` are the decoder's until it is called again. To libavcodec it is no
// error when a slice ends after any block, so rows are counted.
int wayferry_decode(struct wayferry_codec *decoder, const uint8_t *data, int length, int width, int height,
                    const uint8_t *planes[3], int strides[3])
{
    AVFrame *frame = decoder->frame;
    int code = av_new_packet(decoder->packet, length);
    if (code)
        return code;
    memcpy(decoder->packet->data, data, length);
    decoder->packet->pts = ++decoder->number;
    decoder->rows = 0;
    code = avcodec_send_packet(decoder->context, decoder->packet);
    av_packet_unref(decoder->packet);
    if (!code)
        code = avcodec_receive_frame(decoder->context, frame);
    if (code)
        return code;
    int whole = frame->pts == decoder->number && decoder->rows == height && !frame->decode_error_flags &&
                !(frame->flags & AV_FRAME_FLAG_CORRUPT);
    if (!whole || frame->format != AV_PIX_FMT_YUV420P || frame->width != width || frame->height != height)
        return AVERROR_INVALIDDATA;
    for (int plane = 0; plane < 3; plane++) {
        planes[plane] = frame->data[plane];
        strides[plane] = frame->linesize[plane];
    }
    return 0;
}
